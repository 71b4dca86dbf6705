"""Destinations of requests: servers at three levels, variables, base URLs, encoded paths."""

from typing import Any

import pytest

from gateway.domain.updates.import_reports import Status
from gateway.errors import BadInput
from tests.support.openapi import SERVER, compile_it, document, fate, only, operation


def target(raw: dict[str, Any], **options: Any) -> tuple[str, str, str]:
    plan = only(raw, **options).plan
    return plan.origin, plan.path, plan.query


def at(*urls: str, path: str = "/x", **server: Any) -> dict[str, Any]:
    return {**operation({}, path=path), "servers": [{"url": url, **server} for url in urls]}


def test_the_innermost_servers_count() -> None:
    """OpenAPI: operation before path item before document."""
    raw = document(
        {
            "/a": {"get": {"servers": [{"url": "https://op.example"}]}, "servers": [{"url": "https://item.example"}]},
            "/b": {"get": {}, "servers": [{"url": "https://item.example"}]},
            "/c": {"get": {}},
        }
    )

    assert [made.plan.origin for made in compile_it(raw).operations] == [
        "https://op.example",
        "https://item.example",
        SERVER,
    ]


def test_a_given_url_replaces_every_server() -> None:
    """Ours: `base_url` overrides all levels."""
    raw = operation({"servers": [{"url": "https://op.example/v1"}]})

    assert target(raw, base_url="http://127.0.0.1:9000/up/") == ("http://127.0.0.1:9000", "/up/x", "")


@pytest.mark.parametrize(
    ("root", "own", "base", "note"),
    [
        ("https://h/v2", None, "https://h2/v2", None),
        (
            "https://h/v2",
            None,
            "https://h2",
            "GET /x: the base URL replaces the server 'https://h/v2'; requests lack its path",
        ),
        ("https://h", "https://up.example", "https://h2", "the base URL replaces its own server 'https://up.example'"),
        ("https://h", "https://h", "https://h2", None),
        ("https://h", "https://up.example/v1/", "https://up.example/v1", None),
        ("https://h", "https://{z}/v1", "https://h2/v1", None),
    ],
)
def test_a_server_that_a_base_url_replaces_is_noted(root: str, own: str | None, base: str, note: str | None) -> None:
    """Ours: `base_url` is what an admin wants, and the report names the addresses that the document has instead."""
    raw = at(root)
    for method in ("get", "put"):
        raw["paths"]["/x"][method] = {"servers": [{"url": own}]} if own else {}
    report = compile_it(raw, base_url=base).report

    assert report.warnings == ()
    assert len(report.notes) == (note is not None)
    assert note is None or report.notes[0].replace(" and 1 more", "").endswith(note)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://API.example.com:443/v1/", ("https://api.example.com", "/v1/x", "")),
        ("http://h:8080", ("http://h:8080", "/x", "")),
        ("https://[::1]:8/a%20b", ("https://[::1]:8", "/a%20b/x", "")),
        ("https://h/api?api-version=1&k=a%20b", ("https://h", "/api/x", "api-version=1&k=a%20b")),
        ("https://münchen.example/é", ("https://xn--mnchen-3ya.example", "/%C3%A9/x", "")),
        ("https://h/100%/{y}", ("https://h", "/100%25/%7Bw%7D/x", "")),
    ],
)
def test_a_server_url_is_parsed(url: str, expected: tuple[str, str, str]) -> None:
    """RFC 3986: origin, encoded path and query."""
    assert target(at(url, variables={"y": {"default": "{w}"}})) == expected


def test_variables_take_their_defaults() -> None:
    """OpenAPI: server variables."""
    variables = {"v": {"default": "v2"}, "r": {"enum": ["eu", "us"]}, "p": {"default": 8443}}

    assert target(at("https://{r}.h:{p}/{v}", variables=variables)) == ("https://eu.h:8443", "/v2/x", "")


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("/v2", "https://docs.example"),
        ("../v2", "https://docs.example"),
        ("//other.example/v2", "https://other.example"),
    ],
)
def test_relative_servers_are_relative_to_the_document(url: str, origin: str) -> None:
    """OpenAPI: relative to where the document was."""
    assert target(at(url), document_url="https://docs.example/specs/openapi.json") == (origin, "/v2/x", "")


def test_without_servers_the_host_is_that_of_the_document() -> None:
    """OpenAPI: the default server is `/`."""
    raw = operation({})
    del raw["servers"]

    assert target(raw, document_url="https://docs.example/a/b.yaml") == ("https://docs.example", "/x", "")
    assert fate(raw).status is Status.SKIPPED
    assert "no base URL" in fate(raw).reasons[0]


def test_the_first_usable_server_is_taken() -> None:
    """Ours: a relative or odd server does not hide the next."""
    assert target(at("wss://h", "/v1", "https://second.example"))[0] == "https://second.example"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h/",
        "https://",
        "https://user:secret@h/",
        "https://h:99999/",
        "https://h:0/",
        "https://h/a/../b",
        "https://h/%2e%2E/b",
        "https://h/..;/b",
        "https://h/a\r\nX: y",
        "https://h\\@evil/",
        "https://ex ample/",
        "https://h_{nothing}/",
        "javascript://h/",
        "https://ho%00st/",
    ],
)
def test_a_server_that_nothing_can_be_sent_to_skips_its_operations(url: str) -> None:
    """Ours: no credentials in URLs, no climbing, no other schemes."""
    assert fate(at(url)).status is Status.SKIPPED


@pytest.mark.parametrize("servers", [{"url": "x"}, "text", [1], [{}], [{"url": 5}]])
def test_malformed_servers_skip_their_operations(servers: object) -> None:
    """Ours: a wrong shape is a reason."""
    assert fate({**operation({}), "servers": servers}).status is Status.SKIPPED


@pytest.mark.parametrize("url", ["/v1", "ftp://h", "https://u:p@h", "https://h/../x", ""])
def test_a_wrong_given_url_is_refused(url: str) -> None:
    """Ours: the admin gets a report, and nothing is imported."""
    with pytest.raises(BadInput) as refused:
        compile_it(operation({}), base_url=url)

    assert refused.value.faults[0].pointer == "/base_url"


@pytest.mark.parametrize(
    ("path", "encoded", "query"),
    [
        ("/x/", "/x/", ""),
        ("/a b/ü", "/a%20b/%C3%BC", ""),
        ("/a%20b/100%", "/a%20b/100%25", ""),
        ("/{b}/{a}/{b}", "/{0}/{1}/{0}", ""),
        ("/pre{a}.post", "/pre{0}.post", ""),
        ("/a}{b", "/a%7D%7Bb", ""),
        ("/x?action=run&v=1 2", "/x", "action=run&v=1%202"),
        ("/#Action=Run", "/", ""),
    ],
)
def test_paths_are_encoded_once(path: str, encoded: str, query: str) -> None:
    """Ours: fixed text is encoded, placeholders are numbered, what is encoded stays."""
    assert target(operation({}, path=path)) == (SERVER, encoded, query)


@pytest.mark.parametrize("path", ["x", "/a/../b", "/a/%2e./b", "/x?q=a:{id}"])
def test_a_path_that_cannot_be_sent_skips_its_operations(path: str) -> None:
    """Ours: nothing climbs out of its server, nothing is sent with an open placeholder."""
    assert fate(operation({}, path=path)).status is Status.SKIPPED


@pytest.mark.parametrize("url", ["//[", "//[::1", "http:///["])
def test_a_broken_relative_server_costs_one_operation(url: str) -> None:
    """Ours: no server URL can cost the whole document (OAS-1)."""
    raw = document({"/a": {"get": {}}, "/b": {"get": {"servers": [{"url": url}]}}})

    made = compile_it(raw, document_url="https://docs.example/openapi.json")

    assert [(report.path, report.status) for report in made.report.operations] == [
        ("/a", Status.OK),
        ("/b", Status.SKIPPED),
    ]
