"""Bytes of the body argument, per media type."""

import base64
import json
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.http.plans import BodyKind, BodyPlan, FieldPlan, Style
from gateway.errors import ArgumentsInvalid, NotYetSupported
from gateway.upstream.serialize.request_builder import RequestBuilder
from tests.unit.upstream.plans import body_plan, header, plan, sent

FORM = "application/x-www-form-urlencoded"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text('aé"\\\n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~é"), inner, max_size=3),
)


def post(first: BodyPlan, /, *others: BodyPlan, **arguments: object) -> tuple[bytes | None, str | None]:
    """Body and content type of a POST."""
    request = sent(plan(method="POST", body=first, bodies=others), **arguments)
    return request.body, header(request, "Content-Type")


@given(JSON)
def test_a_json_body_is_the_given_value(value: object) -> None:
    """OpenAPI: the body argument is the JSON document, whatever its type."""
    raw, media_type = post(body_plan(), body=value)

    assert raw is not None
    assert json.loads(raw) == value
    assert media_type == "application/json"


def test_json_is_compact_utf8_and_keeps_every_digit() -> None:
    """Ours: integers beyond 64 bits are not rounded."""
    raw, _ = post(body_plan(), body={"n": 2**80, "t": "é", "x": [1, {"z": None}]})

    assert raw == '{"n":1208925819614629174706176,"t":"é","x":[1,{"z":null}]}'.encode()


@pytest.mark.parametrize("media_type", ["application/vnd.api+json", "application/json; charset=utf-8"])
def test_the_media_type_is_sent_as_the_document_writes_it(media_type: str) -> None:
    """OpenAPI: the content type is the key of the content map."""
    assert post(body_plan(media_type=media_type), body={})[1] == media_type


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("inf")]}, "\ud800", {1, 2}])
def test_values_that_json_lacks_are_refused(value: object) -> None:
    """Ours: NaN, infinities and lone surrogates are an error of the arguments."""
    with pytest.raises(ArgumentsInvalid) as caught:
        post(body_plan(), body=value)

    assert caught.value.faults[0].pointer == "/body"


def test_a_body_nested_beyond_reason_is_refused() -> None:
    """Ours: depth is an error of the arguments, not a crash."""
    value: list[object] = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(ArgumentsInvalid):
        post(body_plan(), body=value)


@pytest.mark.parametrize("kind", [BodyKind.JSON, BodyKind.FORM, BodyKind.TEXT, BodyKind.BYTES])
def test_an_optional_body_that_is_omitted_sends_nothing(kind: BodyKind) -> None:
    """Ours: no body means no content type either; a required one is missed."""
    media_type = "application/json" if kind is BodyKind.JSON else "text/plain"

    assert post(body_plan(kind, media_type, required=False)) == (None, None)
    with pytest.raises(ArgumentsInvalid, match="required"):
        post(body_plan(kind, media_type))


def test_null_is_a_json_body_and_no_body_elsewhere() -> None:
    """Ours: null counts as absent only where it cannot be written."""
    assert post(body_plan(), body=None)[0] == b"null"
    assert post(body_plan(BodyKind.TEXT, "text/plain", required=False), body=None)[0] is None


def test_a_form_without_field_plans_uses_the_defaults_of_openapi() -> None:
    """OpenAPI: lists repeat, objects are JSON, blanks are plus signs (3.0.4 section 4.7.15)."""
    body = body_plan(BodyKind.FORM, FORM)
    value = {"a b": "1 &+~", "l": ["x", "y"], "o": {"k": "v"}, "t": True, "n": 7.0, "z": None}

    raw, media_type = post(body, body=value)

    assert raw == b"a+b=1+%26%2B~&l=x&l=y&o=%7B%22k%22%3A%22v%22%7D&t=true&n=7"
    assert media_type == FORM


@pytest.mark.parametrize(
    ("field", "value", "pairs"),
    [
        (FieldPlan(name="a", explode=False), ["p", "q"], [("a", "p,q")]),
        (FieldPlan(name="a", style=Style.DEEP_OBJECT), {"k": "v w"}, [("a[k]", "v w")]),
        (FieldPlan(name="a", style=Style.DEEP_OBJECT), {"k": [{"m": 1}]}, [("a[k][0][m]", "1")]),
        (FieldPlan(name="a", style=Style.PIPE, explode=False), ["p", "q"], [("a", "p|q")]),
        (FieldPlan(name="a"), {"k": 1, "m": 2}, [("k", "1"), ("m", "2")]),
        (FieldPlan(name="a", media_type="application/json"), ["p", 1], [("a", '["p",1]')]),
        (FieldPlan(name="a", media_type="text/plain"), "p", [("a", "p")]),
        (FieldPlan(name="a", allow_reserved=True), "p/q&r", [("a", "p/q&r")]),
    ],
)
def test_field_plans_determine_the_form_of_a_property(
    field: FieldPlan, value: object, pairs: list[tuple[str, str]]
) -> None:
    """OpenAPI: the Encoding Object of a form."""
    raw, _ = post(body_plan(BodyKind.FORM, FORM, fields=[field]), body={"a": value})

    assert raw is not None
    assert parse_qsl(raw.decode(), keep_blank_values=True) == pairs


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text("aé&=+ %\n#;")))
def test_a_form_reads_back_as_it_was_given(value: dict[str, str]) -> None:
    """Ours: whatever text is given, exactly these pairs arrive."""
    raw, _ = post(body_plan(BodyKind.FORM, FORM), body=value)

    assert raw is not None
    assert dict(parse_qsl(raw.decode(), keep_blank_values=True)) == value


@pytest.mark.parametrize(
    ("media_type", "value", "raw", "sent_type"),
    [
        ("text/plain", "hi", b"hi", "text/plain"),
        ("text/plain", "hé", "hé".encode(), "text/plain; charset=utf-8"),
        ("text/plain; charset=utf-8", "hé", "hé".encode(), "text/plain; charset=utf-8"),
        ("text/plain; charset=ISO-8859-1", "hé", b"h\xe9", "text/plain; charset=ISO-8859-1"),
        ("application/jwt", "é", "é".encode(), "application/jwt"),
        ("text/plain", 7.0, b"7", "text/plain"),
    ],
)
def test_text_is_sent_in_its_charset(media_type: str, value: object, raw: bytes, sent_type: str) -> None:
    """Ours: a text body declares its charset where the default would be another."""
    assert post(body_plan(BodyKind.TEXT, media_type), body=value) == (raw, sent_type)


@pytest.mark.parametrize(("media_type", "value"), [("text/plain; charset=latin-1", "中"), ("text/plain", {"a": 1})])
def test_text_that_cannot_be_written_is_refused(media_type: str, value: object) -> None:
    """Ours: nothing is replaced by question marks."""
    with pytest.raises(ArgumentsInvalid):
        post(body_plan(BodyKind.TEXT, media_type), body=value)


@pytest.mark.parametrize(
    ("media_type", "value", "raw", "sent_type"),
    [
        ("application/octet-stream", {"base64": "iVBO/w=="}, b"\x89PN\xff", "application/octet-stream"),
        ("image/png", {"base64": "", "content_type": "image/gif"}, b"", "image/png"),
        ("image/*", {"base64": "AA==", "content_type": "image/gif"}, b"\0", "image/gif"),
        ("*/*", {"base64": "AA=="}, b"\0", "application/octet-stream"),
        ("application/octet-stream", "text", b"text", "application/octet-stream"),
    ],
)
def test_a_file_is_sent_as_its_bytes(media_type: str, value: object, raw: bytes, sent_type: str) -> None:
    """Ours: files are base64 in an object; the document's media type wins unless it is a range."""
    assert post(body_plan(BodyKind.BYTES, media_type), body=value) == (raw, sent_type)


@pytest.mark.parametrize(
    "value",
    [
        {"base64": "not base64!"},
        {"base64": "AAA"},
        {"base64": 7},
        {},
        [],
        7,
        {"base64": "AA==", "content_type": "a/b\r\nX: y"},
        {"base64": "AA==", "content_type": "nonsense"},
        {"base64": "AA==", "content_type": 7},
    ],
)
def test_a_value_that_is_no_file_is_refused(value: object) -> None:
    """Ours: bytes are never guessed."""
    with pytest.raises(ArgumentsInvalid):
        post(body_plan(BodyKind.BYTES, "*/*"), body=value)


@given(st.binary())
def test_any_bytes_arrive_unchanged(raw: bytes) -> None:
    """Ours: a file is its bytes."""
    value = {"base64": base64.b64encode(raw).decode()}

    assert post(body_plan(BodyKind.BYTES, "application/pdf"), body=value)[0] == raw


def test_the_caller_may_choose_among_media_types() -> None:
    """Ours: the argument content_type picks one of the plan's, the first is the default."""
    form = body_plan(BodyKind.FORM, FORM)

    assert post(body_plan(), form, body={"a": 1}) == (b'{"a":1}', "application/json")
    assert post(body_plan(), form, body={"a": 1}, content_type=FORM) == (b"a=1", FORM)
    for wrong in ("text/plain", 7, ["x"]):
        with pytest.raises(ArgumentsInvalid, match="must be one of"):
            post(body_plan(), form, body={"a": 1}, content_type=wrong)


@pytest.mark.parametrize(
    ("kind", "media_type"),
    [
        (BodyKind.XML, "application/xml; charset=base64"),
        (BodyKind.JSON, "application/json\r\nX: y"),
        (BodyKind.TEXT, "text/plain; charset=ebcdic-x"),
        (BodyKind.TEXT, "text/plain; charset=base64"),
    ],
)
def test_bodies_that_cannot_be_written_are_refused_at_once(kind: BodyKind, media_type: str) -> None:
    """Ours: an unwritable body is found when the plan is compiled."""
    with pytest.raises(NotYetSupported):
        RequestBuilder(plan(method="POST", body=body_plan(kind, media_type)))
