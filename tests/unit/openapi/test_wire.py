"""From a document to the wire: every style, location and type, and what a server reads back."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.http.requests import UpstreamRequest
from gateway.errors import ArgumentsInvalid
from gateway.upstream.serialize.request_builder import RequestBuilder
from tests.support.openapi import SERVER, definition_of, only, operation, with_parameter

ARRAY = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200, "B": 150}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SEGMENT = st.text("abcXYZ019 é中%&=+,;:@!$'()*~_-", min_size=1, max_size=8).filter(lambda text: "%" not in text)


def sent(document: Mapping[str, Any], **arguments: object) -> UpstreamRequest:
    """The request of the document's one operation."""
    return RequestBuilder(only(document).plan).build(arguments)


def target(node: Mapping[str, Any], value: object, *, path: str = "/x", **more: Any) -> str:
    """Path and query for one parameter called `color`."""
    return sent(with_parameter({"name": "color", **node}, path=path, **more), color=value).url.removeprefix(SERVER)


def header(node: Mapping[str, Any], value: object, name: str, **more: Any) -> str | None:
    """One header for one parameter called `color`."""
    request = sent(with_parameter({"name": "color", **node}, **more), color=value)
    return dict(request.headers).get(name)


@pytest.mark.parametrize(
    ("style", "explode", "empty", "string", "array", "mapping"),
    [
        ("matrix", False, ";color", ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"),
        (
            "matrix",
            True,
            ";color",
            ";color=blue",
            ";color=blue;color=black;color=brown",
            ";R=100;G=200;B=150",
        ),
        ("label", False, None, ".blue", ".blue,black,brown", ".R,100,G,200,B,150"),
        ("label", True, None, ".blue", ".blue.black.brown", ".R=100.G=200.B=150"),
        ("simple", False, None, "blue", "blue,black,brown", "R,100,G,200,B,150"),
        ("simple", True, None, "blue", "blue,black,brown", "R=100,G=200,B=150"),
    ],
)
def test_the_styles_of_a_path(
    style: str, explode: bool, empty: str | None, string: str, array: str, mapping: str
) -> None:
    """OpenAPI: the table of style examples, path (3.1.1 section 4.8.12.4)."""
    node: dict[str, Any] = {"in": "path", "required": True, "style": style, "explode": explode, "schema": {}}

    assert target(node, "blue", path="/{color}") == f"/{string}"
    assert target(node, ARRAY, path="/{color}") == f"/{array}"
    assert target(node, OBJECT, path="/{color}") == f"/{mapping}"
    if empty is not None:
        assert target(node, "", path="/{color}") == f"/{empty}"


@pytest.mark.parametrize(
    ("style", "explode", "value", "query"),
    [
        ("form", False, "", "color="),
        ("form", False, "blue", "color=blue"),
        ("form", False, ARRAY, "color=blue,black,brown"),
        ("form", False, OBJECT, "color=R,100,G,200,B,150"),
        ("form", True, "", "color="),
        ("form", True, "blue", "color=blue"),
        ("form", True, ARRAY, "color=blue&color=black&color=brown"),
        ("form", True, OBJECT, "R=100&G=200&B=150"),
        ("spaceDelimited", False, ARRAY, "color=blue%20black%20brown"),
        ("spaceDelimited", False, OBJECT, "color=R%20100%20G%20200%20B%20150"),
        ("spaceDelimited", True, ARRAY, "color=blue&color=black&color=brown"),
        ("pipeDelimited", False, ARRAY, "color=blue%7Cblack%7Cbrown"),
        ("pipeDelimited", False, OBJECT, "color=R%7C100%7CG%7C200%7CB%7C150"),
        ("pipeDelimited", True, ARRAY, "color=blue&color=black&color=brown"),
        ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
        (
            "deepObject",
            True,
            {"a": {"b": [1, {"c": True}]}},
            "color%5Ba%5D%5Bb%5D%5B0%5D=1&color%5Ba%5D%5Bb%5D%5B1%5D%5Bc%5D=true",
        ),
    ],
)
def test_the_styles_of_a_query(style: str, explode: bool, value: object, query: str) -> None:
    """OpenAPI: the table of style examples, query."""
    node: dict[str, Any] = {"in": "query", "style": style, "explode": explode, "schema": {}}

    assert target(node, value) == f"/x?{query}".replace("[", "%5B").replace("]", "%5D")


@pytest.mark.parametrize(
    ("explode", "value", "written"),
    [
        (False, "blue", "blue"),
        (False, "", ""),
        (False, ARRAY, "blue,black,brown"),
        (False, OBJECT, "R,100,G,200,B,150"),
        (True, ARRAY, "blue,black,brown"),
        (True, OBJECT, "R=100,G=200,B=150"),
        (False, 7.0, "7"),
        (False, True, "true"),
    ],
)
def test_the_styles_of_a_header(explode: bool, value: object, written: str) -> None:
    """OpenAPI: simple, not percent-encoded."""
    assert header({"in": "header", "explode": explode, "schema": {}}, value, "color") == written


@pytest.mark.parametrize(
    ("style", "explode", "value", "written"),
    [
        (None, None, "blue sky", "color=blue%20sky"),
        (None, False, ARRAY, "color=blue,black,brown"),
        (None, False, OBJECT, "color=R,100,G,200,B,150"),
        (None, None, ARRAY, "color=blue; color=black; color=brown"),
        (None, None, OBJECT, "R=100; G=200; B=150"),
        ("cookie", None, "a/b=c", "color=a/b=c"),
        ("cookie", None, OBJECT, "R=100; G=200; B=150"),
        ("cookie", False, ARRAY, "color=blue,black,brown"),
    ],
)
def test_the_styles_of_a_cookie(style: str | None, explode: bool | None, value: object, written: str) -> None:
    """OpenAPI: form, and since 3.2 cookie, which encodes nothing."""
    node: dict[str, Any] = {"in": "cookie", "schema": {}}
    node |= {} if style is None else {"style": style}
    node |= {} if explode is None else {"explode": explode}

    assert header(node, value, "Cookie", version="3.2.0") == written


@pytest.mark.parametrize("value", ["a;b", 'a"b', "a b", "é", "a\\b", "a\r\nX: y"])
def test_a_raw_cookie_cannot_end_itself(value: str) -> None:
    """RFC 6265: a value that no cookie can hold is refused where nothing is encoded."""
    with pytest.raises(ArgumentsInvalid):
        header({"in": "cookie", "style": "cookie", "schema": {}}, value, "Cookie", version="3.2.0")


@pytest.mark.parametrize(
    ("media_type", "schema", "value", "query"),
    [
        ("application/json", {"type": "object"}, {"a": ["b c"]}, "color=%7B%22a%22%3A%5B%22b%20c%22%5D%7D"),
        ("application/vnd.x+json", {}, [1], "color=%5B1%5D"),
        ("text/plain", {"type": "string"}, "a&b", "color=a%26b"),
        ("application/x-www-form-urlencoded", {"type": "object"}, {"a": "b c"}, "color=a%3Db%2Bc"),
    ],
)
def test_a_content_parameter_is_serialised_first(media_type: str, schema: Any, value: object, query: str) -> None:
    """OpenAPI: `content` in place of a style."""
    node = {"in": "query", "content": {media_type: {"schema": schema}}}

    assert target(node, value) == f"/x?{query}"


def test_a_content_parameter_in_header_path_and_cookie() -> None:
    """OpenAPI: `content` in every place; headers stay ASCII."""
    content: dict[str, Any] = {"content": {"application/json": {"schema": {}}}}

    assert header({"in": "header", **content}, {"a": "é"}, "color") == '{"a":"\\u00e9"}'
    assert header({"in": "cookie", **content}, {"a": 1}, "Cookie") == "color=%7B%22a%22%3A1%7D"
    assert target({"in": "path", "required": True, **content}, {"a": 1}, path="/{color}") == "/%7B%22a%22%3A1%7D"


@pytest.mark.parametrize(
    ("value", "query"),
    [
        ("a/b?c:d", "q=a/b?c:d"),
        ("100%25", "q=100%25"),
        ("a&b=c#d", "q=a%26b=c%23d"),
        ("[x]", "q=%5Bx%5D"),
        ("a+b c", "q=a%2Bb%20c"),
    ],
)
def test_reserved_characters_stay_where_they_may(value: str, query: str) -> None:
    """OpenAPI: `allowReserved`, but for what would end the value or mean something else."""
    node = {"name": "q", "in": "query", "allowReserved": True, "schema": {"type": "string"}}

    assert sent(with_parameter(node), q=value).url == f"{SERVER}/x?{query}"


def test_empty_null_and_absent_are_three_things() -> None:
    """Ours: empty is sent empty; null and absent send nothing (OAS-2)."""
    document = with_parameter({"name": "q", "in": "query", "schema": {"type": ["string", "null"]}})

    assert sent(document, q="").url == f"{SERVER}/x?q="
    assert sent(document, q=None).url == f"{SERVER}/x"
    assert sent(document).url == f"{SERVER}/x"
    assert sent(with_parameter({"name": "q", "in": "query", "schema": {"type": "array"}}), q=[]).url == f"{SERVER}/x"


@given(TEXT)
def test_a_text_in_a_query_reads_back(value: str) -> None:
    """Ours: urllib reads what was given, whatever it is."""
    url = sent(with_parameter({"name": "q", "in": "query", "schema": {}}), q=value).url

    assert parse_qsl(url.partition("?")[2], keep_blank_values=True, strict_parsing=True) == [("q", value)]


@given(st.dictionaries(TEXT.filter(bool), TEXT, min_size=1, max_size=4))
def test_a_deep_object_reads_back(value: dict[str, str]) -> None:
    """Ours: each member is a pair of its own."""
    node = {"name": "f", "in": "query", "style": "deepObject", "schema": {"type": "object"}}
    url = sent(with_parameter(node), f=value).url

    pairs = parse_qsl(url.partition("?")[2], keep_blank_values=True)
    assert pairs == [(f"f[{key}]", text) for key, text in value.items()]


@given(SEGMENT)
def test_a_text_in_a_path_reads_back(value: str) -> None:
    """Ours: one segment goes in, and the same one comes out."""
    node = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    url = sent(with_parameter(node, path="/a/{id}/b"), id=value).url

    assert unquote(url).removeprefix(SERVER) == f"/a/{value}/b"
    assert url.count("/") == SERVER.count("/") + 3


@given(st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_written_as_json_writes_them(value: float) -> None:
    """Ours: no number changes on its way, and none ends in `.0`."""
    url = sent(with_parameter({"name": "n", "in": "query", "schema": {}}), n=value).url
    [(_, text)] = parse_qsl(url.partition("?")[2])

    assert (text == "true") is value if isinstance(value, bool) else float(text) == float(value)
    assert not text.endswith(".0")


def test_the_whole_query_is_one_parameter() -> None:
    """OpenAPI 3.2: `in: querystring`."""
    form = {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}
    node = {"name": "qs", "in": "querystring", "content": form}

    assert sent(with_parameter(node, version="3.2.0"), qs={"a": "1 2", "b": [1, 2]}).url == f"{SERVER}/x?a=1+2&b=1&b=2"


@pytest.mark.parametrize("method", ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"])
def test_every_method_is_sent(method: str) -> None:
    """OpenAPI: all methods of a path item, QUERY since 3.2."""
    assert sent(operation({}, method=method, version="3.2.0")).method == method.upper()


def test_a_method_of_its_own_is_sent_as_written() -> None:
    """OpenAPI 3.2: `additionalOperations`."""
    document = {
        "openapi": "3.2.0",
        "info": {"title": "T", "version": "1"},
        "servers": [{"url": SERVER}],
        "paths": {"/x": {"additionalOperations": {"COPY": {"operationId": "op"}}}},
    }

    assert sent(document).method == "COPY"


@pytest.mark.parametrize(
    ("servers", "url"),
    [
        (
            [{"url": "https://{env}.h.example/{v}", "variables": {"env": {"default": "api"}, "v": {"default": "v2"}}}],
            "https://api.h.example/v2/x",
        ),
        (
            [{"url": "https://h.example/{b}", "variables": {"b": {"enum": ["one", "two"], "default": "two"}}}],
            "https://h.example/two/x",
        ),
        ([{"url": "https://h.example/base/?key=1"}], "https://h.example/base/x?key=1"),
        ([{"url": "https://h.example:443/"}], "https://h.example/x"),
        ([{"url": "ftp://no.example"}, {"url": "https://h.example"}], "https://h.example/x"),
    ],
)
def test_servers_with_variables_paths_and_queries(servers: Any, url: str) -> None:
    """OpenAPI: the server's URL with its variables' defaults, before the path."""
    document = operation({}, servers=servers)

    assert sent(document).url == url


def test_the_innermost_server_counts() -> None:
    """OpenAPI: servers of the operation before those of the path item before those of the document."""
    at_operation, at_path = [{"url": "https://op.example"}], [{"url": "https://path.example"}]
    inner = operation({"servers": at_operation})
    inner["paths"]["/x"]["servers"] = at_path
    outer = operation({})
    outer["paths"]["/x"]["servers"] = at_path

    assert sent(inner).url == "https://op.example/x"
    assert sent(outer).url == "https://path.example/x"


def test_names_that_no_client_takes_are_undone() -> None:
    """Ours: arguments have plain names, the wire has the document's."""
    document = operation(
        {
            "parameters": [
                {"name": "filter[name]", "in": "query", "schema": {}},
                {"name": "a b", "in": "query", "schema": {}},
                {"name": "id", "in": "query", "schema": {}},
                {"name": "id", "in": "header", "schema": {}},
            ]
        }
    )
    assert set(definition_of(only(document))["inputSchema"]["properties"]) == {
        "filter_name_",
        "a_b",
        "query_id",
        "header_id",
    }

    request = sent(document, filter_name_="x", a_b="y", query_id=1, header_id=2)

    assert parse_qsl(request.url.partition("?")[2]) == [("filter[name]", "x"), ("a b", "y"), ("id", "1")]
    assert dict(request.headers)["id"] == "2"
