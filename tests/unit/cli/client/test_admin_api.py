"""Items, objects and failures from the admin API's answers."""

import json
from collections.abc import Callable

import httpx
import pytest

from gateway.cli.client.admin_api import AdminApi, path_of
from gateway.cli.client.locations import mcp_url
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure

_URL = "http://127.0.0.1:8080"


def _admin(answer: Callable[[httpx.Request], httpx.Response]) -> AdminApi:
    return AdminApi(_URL, "secret", transport=httpx.MockTransport(answer))


def _three_pages(request: httpx.Request) -> httpx.Response:
    start = int(request.url.params.get("cursor", "0"))
    items = [{"n": n} for n in range(start, min(start + 2, 5))]
    return httpx.Response(200, json={"items": items, "next_cursor": str(start + 2) if start + 2 < 5 else None})


def test_every_page_of_a_list_is_followed() -> None:
    """Ours: a list is complete, however it is cut."""
    with _admin(_three_pages) as admin:
        assert [item["n"] for item in admin.pages("/tenants")] == [0, 1, 2, 3, 4]


def test_a_limit_ends_the_list_and_requests_no_more_than_needed() -> None:
    """Ours: `--limit` is the number of items, not of pages."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.params["limit"])
        return _three_pages(request)

    with _admin(answer) as admin:
        assert [item["n"] for item in admin.pages("/tenants", limit=3)] == [0, 1, 2]
    assert asked == ["3", "1"]


def test_the_credential_is_sent_and_the_environment_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: no proxy of the environment sees the operator key."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"slug": "acme"})

    with _admin(answer) as admin:
        assert admin.get(path_of("tenants", "acme")) == {"slug": "acme"}
    assert seen[0].headers["Authorization"] == "Bearer secret"
    assert str(seen[0].url) == f"{_URL}/admin/v1/tenants/acme"


def test_a_name_is_one_segment_of_the_path() -> None:
    """Ours: a name from a document or a person cannot reach another route."""
    assert path_of("tenants", "a/../b?c#d") == "/tenants/a%2F..%2Fb%3Fc%23d"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_lead_up_the_path_is_sent_nowhere(name: str) -> None:
    """RFC 3986: dots are steps of a path, also percent-encoded; `tool delete ..` would delete the tenant."""
    with pytest.raises(Failure, match="invalid name") as refused:
        path_of("tenants", "acme", "tools", name)
    assert refused.value.exit_code is ExitCode.USAGE
    with pytest.raises(Failure, match="invalid name"):
        mcp_url(_URL, name)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, ExitCode.FAILED),
        (401, ExitCode.DENIED),
        (403, ExitCode.DENIED),
        (404, ExitCode.NOT_FOUND),
        (409, ExitCode.CONFLICT),
        (412, ExitCode.CONFLICT),
        (413, ExitCode.FAILED),
        (422, ExitCode.FAILED),
        (429, ExitCode.BUSY),
        (500, ExitCode.FAILED),
        (502, ExitCode.FAILED),
        (503, ExitCode.BUSY),
    ],
)
def test_each_status_has_its_exit_code(status: int, code: ExitCode) -> None:
    """Ours: scripts can distinguish the kinds of refusal."""
    problem = {"title": "No", "detail": "because", "code": "some.code", "correlation_id": "abc"}

    with (
        _admin(lambda _: httpx.Response(status, json=problem)) as admin,
        pytest.raises(Failure, match=r"because \[some\.code abc\]") as caught,
    ):
        admin.get("/x")
    assert caught.value.exit_code is code


def test_faults_and_conflicts_of_a_problem_are_kept() -> None:
    """Ours: pointer, line and column of a bad document reach the person."""
    problem = {
        "detail": "1 tool name is taken; import under a prefix",
        "errors": [{"pointer": "/paths/~1x", "line": 3, "column": 7, "reason": "is not an object"}],
        "conflicts": [{"name": "list_pets", "owner": "source:pets"}],
        "suggested_prefix": "pets_",
    }

    with _admin(lambda _: httpx.Response(409, json=problem)) as admin, pytest.raises(Failure) as caught:
        admin.send("POST", "/x", {})
    first, second = caught.value.faults
    assert (first.pointer, first.line, first.column) == ("/paths/~1x", 3, 7)
    assert second.reason == "belongs to source:pets"
    assert caught.value.message == "1 tool name is taken; import under a prefix: --prefix pets_"


def test_a_gateway_that_is_not_there_is_named() -> None:
    """Ours: the message names the URL that did not answer."""

    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with _admin(refuse) as admin, pytest.raises(Failure, match=_URL) as caught:
        admin.get("/x")
    assert caught.value.exit_code is ExitCode.UNREACHABLE
    assert "gateway serve" in caught.value.message


@pytest.mark.parametrize(
    ("code", "following"), [("auth.unauthenticated", "--key"), ("upstream.egress_denied", "gateway tenant egress")]
)
def test_a_refusal_names_the_remedy(code: str, following: str) -> None:
    """Ours: the message names the remedy where a person can apply it."""
    with (
        _admin(lambda _: httpx.Response(422, json={"detail": "no", "code": code})) as admin,
        pytest.raises(Failure, match=following),
    ):
        admin.get("/x")


def test_json_that_is_no_object_is_not_taken_for_an_empty_answer() -> None:
    """Ours: another program behind the URL is reported as one, instead of an empty table."""
    with (
        _admin(lambda _: httpx.Response(200, json=[1, 2])) as admin,
        pytest.raises(Failure, match="is it a gateway"),
    ):
        list(admin.pages("/tenants"))


@pytest.mark.parametrize("status", [200, 500])
def test_a_program_that_is_no_gateway_is_reported(status: int) -> None:
    """Ours: an HTML page of another program ends in one line, not in a traceback."""
    with (
        _admin(lambda _: httpx.Response(status, html="<h1>hello</h1>")) as admin,
        pytest.raises(Failure) as caught,
    ):
        admin.get("/x")
    assert caught.value.exit_code is ExitCode.FAILED
    assert "\n" not in caught.value.message


def test_an_upload_is_sent_piece_by_piece_with_its_length_and_version() -> None:
    """RFC 9110: a known length is declared; If-Match guards the version that is replaced."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(201, json=json.loads(request.read()))

    with _admin(answer) as admin:
        answered = admin.upload("PUT", "/x", iter([b'{"a":', b"1}"]), length=7, if_match='"3"')
    assert answered == {"a": 1}
    assert seen[0].headers["Content-Length"] == "7"
    assert "Transfer-Encoding" not in seen[0].headers
    assert seen[0].headers["If-Match"] == '"3"'
