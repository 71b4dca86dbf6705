"""Multipart bodies from objects, read back by two parsers that servers use."""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_multipart.multipart import File, parse_form

from gateway.domain.http.plans import BodyKind, BodyPlan, FieldPlan, Style, XmlNode
from gateway.errors import ArgumentsInvalid, NotYetSupported
from gateway.upstream.serialize.request_builder import RequestBuilder
from tests.support.fidelity import Part, parse_parts
from tests.unit.upstream.plans import body_plan, header, plan, sent

FORM_DATA = "multipart/form-data"
PNG = b"\x89PNG\r\n\x1a\n\x00\xff--\r\n"
NAME = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\\"), min_size=1, max_size=8)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def file(content: bytes = PNG, **members: str) -> dict[str, str]:
    """A file argument."""
    return {"base64": b64encode(content).decode(), **members}


def made(value: object, *fields: FieldPlan, media_type: str = FORM_DATA, **more: Any) -> tuple[bytes, str]:
    """Body and content type."""
    body = BodyPlan(kind=BodyKind.MULTIPART, media_type=media_type, required=True, fields=fields, **more)
    request = sent(plan(method="POST", body=body), body=value)
    return request.body or b"", header(request, "Content-Type") or ""


def parts(value: object, *fields: FieldPlan, **more: Any) -> list[Part]:
    """The parts as the standard library reads them."""
    return parse_parts(*made(value, *fields, **more))


@pytest.mark.parametrize(
    ("kind", "media_type", "value", "pointer"),
    [
        (BodyKind.MULTIPART, FORM_DATA, {"t": "a", "f": {"base64": "!"}}, "/body/f"),
        (BodyKind.MULTIPART, FORM_DATA, {"l": ["a", {"base64": "!"}]}, "/body/l/1"),
        (BodyKind.MULTIPART, FORM_DATA, {"o": {"base64": "AA==", "content_type": "x"}}, "/body/o"),
        (BodyKind.MULTIPART, FORM_DATA, {"inner": {"a/b": {"base64": "!"}}}, "/body/inner/a~1b"),
        (BodyKind.MULTIPART, FORM_DATA, {"inners": [{}, {"f": [{"base64": "!"}]}]}, "/body/inners/1/f/0"),
        (BodyKind.MULTIPART, "multipart/mixed", ["a", {"base64": "!"}], "/body/1"),
        (BodyKind.FORM, "application/x-www-form-urlencoded", {"t": "a", "s": "\ud800"}, "/body/s"),
        (BodyKind.XML, "application/xml", {"a": {"b": ["x", "\x01"]}}, "/body/a/b/1"),
        (BodyKind.BYTES, "application/octet-stream", {"base64": "!"}, "/body"),
    ],
)
def test_the_refusal_of_a_body_points_at_the_member(
    kind: BodyKind, media_type: str, value: object, pointer: str
) -> None:
    """Ours: whatever writes the body, its refusal names the member that cannot be sent (CAL-2)."""
    nested = (
        FieldPlan(name="inner", media_type=FORM_DATA),
        FieldPlan(name="inners", media_type=FORM_DATA, is_list=True),
    )
    body = BodyPlan(kind=kind, media_type=media_type, required=True, fields=nested if media_type == FORM_DATA else ())

    with pytest.raises(ArgumentsInvalid) as caught:
        sent(plan(method="POST", body=body), body=value)
    assert [fault.pointer for fault in caught.value.faults] == [pointer]
    assert caught.value.message.startswith(f"The argument {pointer} cannot be sent: ")


def test_properties_are_parts_by_their_type() -> None:
    """OpenAPI: text as text, objects as JSON, lists part by part, files with name and type (3.0.4 section 4.7.15)."""
    value = {
        "t": "hé",
        "n": 7.0,
        "o": {"k": [1]},
        "l": ["a", "b"],
        "f": file(filename="a.png", content_type="image/png"),
    }
    read = parts(value, FieldPlan(name="f", is_file=True))

    assert read == [
        Part("t", None, None, "hé".encode()),
        Part("n", None, None, b"7"),
        Part("o", None, "application/json", b'{"k":[1]}'),
        Part("l", None, None, b"a"),
        Part("l", None, None, b"b"),
        Part("f", "a.png", "image/png", PNG),
    ]


def test_null_is_no_part_and_nothing_is_an_empty_body() -> None:
    """Ours: null counts as absent; an object without members has no parts."""
    body, content_type = made({"a": None, "l": [None]})

    boundary = content_type.partition("boundary=")[2]
    assert body == f"--{boundary}--\r\n".encode()


def test_files_have_default_names_and_types() -> None:
    """Ours: servers take a part for a file by its file name."""
    assert parts({"f": [file(), file(b"")]}, FieldPlan(name="f", is_file=True, is_list=True)) == [
        Part("f", "f", "application/octet-stream", PNG),
        Part("f", "f", "application/octet-stream", b""),
    ]


@pytest.mark.parametrize(
    ("declared", "own", "taken"),
    [
        ("image/png", "image/jpeg", "image/png"),
        ("image/png, image/jpeg", "image/jpeg", "image/jpeg"),
        ("image/*", "image/webp", "image/webp"),
        ("image/*", None, "application/octet-stream"),
        ("image/png, image/jpeg", "text/plain", "image/png"),
        (None, "text/csv", "text/csv"),
        ("*/*", "text/csv", "text/csv"),
    ],
)
def test_the_type_of_a_file_is_one_that_is_declared(declared: str | None, own: str | None, taken: str) -> None:
    """OpenAPI: `encoding.contentType` may name several types and ranges."""
    given_file = file() if own is None else file(content_type=own)
    [part] = parts({"f": given_file}, FieldPlan(name="f", is_file=True, media_type=declared))

    assert part.content_type == taken


def test_declared_types_and_headers_belong_to_the_part() -> None:
    """OpenAPI: the Encoding Object."""
    fields = (
        FieldPlan(name="t", media_type="text/plain; charset=utf-8", headers=(("X-Kind", "note"),)),
        FieldPlan(name="j", media_type="application/json", is_list=True),
        FieldPlan(name="w", media_type="application/vnd.x+json"),
    )
    body, content_type = made({"t": "x", "j": [{"a": 1}, "s"], "w": ["x", 1]}, *fields)

    assert b"Content-Type: text/plain; charset=utf-8\r\nX-Kind: note\r\n" in body
    assert [(part.name, part.content_type, part.content) for part in parse_parts(body, content_type)][1:] == [
        ("j", "application/json", b'{"a":1}'),
        ("j", "application/json", b'"s"'),
        ("w", "application/vnd.x+json", b'["x",1]'),
    ]


@pytest.mark.parametrize(
    ("style", "explode", "value", "pairs"),
    [
        (Style.FORM, True, ["a", "b c"], [("p", b"a"), ("p", b"b c")]),
        (Style.FORM, False, ["a", "b"], [("p", b"a,b")]),
        (Style.PIPE, False, ["a", "b"], [("p", b"a|b")]),
        (Style.DEEP_OBJECT, True, {"k": {"m": "v&"}}, [("p[k][m]", b"v&")]),
        (Style.FORM, True, {"k": 1}, [("k", b"1")]),
        (Style.FORM, False, "x", [("p", b"x")]),
    ],
)
def test_a_style_makes_parts_that_are_not_percent_encoded(
    style: Style, explode: bool, value: object, pairs: list[tuple[str, bytes]]
) -> None:
    """OpenAPI 3.1: `style` and `explode` count in multipart/form-data too."""
    field = FieldPlan(name="p", style=style, explode=explode, is_styled=True)

    assert [(part.name, part.content) for part in parts({"p": value}, field)] == pairs


def test_a_list_is_parts_without_names() -> None:
    """OpenAPI 3.2: a multipart body may be an array."""
    value = [{"a": 1}, "text", file(content_type="image/png")]

    assert parts(value, media_type="multipart/mixed") == [
        Part(None, None, "application/json", b'{"a":1}'),
        Part(None, None, None, b"text"),
        Part(None, "file", "image/png", PNG),
    ]


def test_a_part_may_be_xml() -> None:
    """OpenAPI: `encoding.contentType` of XML."""
    field = FieldPlan(name="addr", media_type="application/xml", xml=0)

    assert parts({"addr": {"street": "x&y"}}, field, xml=(XmlNode(name="address"),)) == [
        Part("addr", None, "application/xml", b"<address><street>x&amp;y</street></address>")
    ]


def test_an_object_with_file_members_is_json_where_json_is_declared() -> None:
    """Ours: only what the document does not call JSON may be a file."""
    value = file()

    assert (
        parts({"o": value}, FieldPlan(name="o", media_type="application/json"))[0].content
        == json.dumps(value, separators=(",", ":")).encode()
    )
    assert parts({"free": value})[0].filename == "free"


@given(st.dictionaries(NAME, TEXT | st.binary(max_size=40), max_size=5))
def test_python_multipart_reads_the_given_values(value: dict[str, str | bytes]) -> None:
    """Ours: a server's parser finds the same names, texts and bytes."""
    body, content_type = made({name: file(item) if isinstance(item, bytes) else item for name, item in value.items()})

    assert _parsed(body, content_type) == {
        _as_browsers_write(name): item if isinstance(item, bytes) else item.encode() for name, item in value.items()
    }


def test_the_same_arguments_make_the_same_bytes() -> None:
    """Ours: the approved bytes are those that are sent: the boundary is no accident."""
    value = {"a": "x", "f": file()}

    assert made(value) == made(value)
    assert made(value)[1] != made({**value, "a": "y"})[1]


def test_no_content_can_hold_its_own_boundary() -> None:
    """Ours: a part that repeats another body's boundary ends nothing."""
    _, content_type = made({"a": "x"})
    boundary = content_type.partition("boundary=")[2]
    nested = f'\r\n--{boundary}--\r\n--{boundary}\r\nContent-Disposition: form-data; name="evil"\r\n\r\n1'

    assert [(part.name, part.content) for part in parts({"a": nested})] == [("a", nested.encode())]


@pytest.mark.parametrize("name", ["a\x00b", "a\x1bb", "a\x7f"])
def test_a_name_with_a_control_character_is_refused(name: str) -> None:
    """Ours: nothing in a name reaches a header that could end it."""
    with pytest.raises(ArgumentsInvalid):
        made({name: "x"})
    with pytest.raises(ArgumentsInvalid):
        made({"f": file(filename=name)})


def test_quotes_and_line_breaks_in_names_are_written_as_browsers_do() -> None:
    """Ours: a file name cannot add a header (HTML, multipart/form-data encoding algorithm)."""
    body, _ = made({'f"\r\nX': file(filename='a"\r\nY: z.png')})

    assert b'name="f%22%0D%0AX"; filename="a%22%0D%0AY: z.png"' in body


@pytest.mark.parametrize(
    "value", ["text", 1, {"f": {"base64": "!!"}}, {"f": {"base64": "eA==", "content_type": "no type\r\n"}}]
)
def test_values_that_cannot_be_parts_are_refused(value: object) -> None:
    """Ours: an error of the arguments, and nothing is sent."""
    with pytest.raises(ArgumentsInvalid):
        made(value, FieldPlan(name="f", is_file=True))


def test_an_object_in_the_place_of_text_is_refused() -> None:
    """Ours: there is no guess at an object as an image."""
    with pytest.raises(ArgumentsInvalid):
        made({"f": {"k": 1}}, FieldPlan(name="f", media_type="image/png"))


@pytest.mark.parametrize(
    "field",
    [
        FieldPlan(name="a", headers=(("X\r\nY", "1"),)),
        FieldPlan(name="a", headers=(("X", "1\r\nY: 2"),)),
        FieldPlan(name="a", media_type="text/plain\r\nY: 2"),
    ],
)
def test_a_plan_with_a_broken_header_is_refused_at_once(field: FieldPlan) -> None:
    """Ours: nothing of a document reaches a header unchecked."""
    with pytest.raises(NotYetSupported):
        RequestBuilder(plan(method="POST", body=body_plan(BodyKind.MULTIPART, FORM_DATA, fields=[field])))


def _as_browsers_write(name: str) -> bytes:
    return name.replace('"', "%22").encode()


def _parsed(body: bytes, content_type: str) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}

    def on_field(field: Any) -> None:
        found[field.field_name] = field.value or b""

    def on_file(read: File) -> None:
        read.file_object.seek(0)
        found[read.field_name or b""] = read.file_object.read()

    class Stream:
        def __init__(self) -> None:
            self.left = body

        def read(self, size: int, /) -> bytes:
            piece, self.left = self.left[:size], self.left[size:]
            return piece

    headers = {"Content-Type": content_type.encode(), "Content-Length": str(len(body)).encode()}
    parse_form(headers, Stream(), on_field, on_file)
    return found


def test_parts_may_be_made_of_parts() -> None:
    """OpenAPI 3.2: nested `encoding`, by name and by position; each body has a boundary of its own."""
    listed = FieldPlan(name="l", style=Style.PIPE, explode=False)
    inner = (
        FieldPlan(name="", media_type="text/html"),
        FieldPlan(name="", media_type="application/x-www-form-urlencoded", fields=(listed,)),
    )
    outer = FieldPlan(name="a", media_type="multipart/mixed", fields=inner)
    [part] = parts({"a": ["<b>", {"l": ["x", "y"]}]}, outer)
    body, kind = made({"a": ["<b>", {"l": ["x", "y"]}]}, outer)
    head = next(line for line in body.decode().split("\r\n") if line.startswith("Content-Type: multipart/mixed"))
    within = body[body.index(b"\r\n\r\n") + 4 : body.rindex(b"\r\n--")]

    assert part.name == "a"
    assert head.partition("=")[2] not in kind
    assert [(item.content_type, item.content) for item in parse_parts(within, head.partition(": ")[2])] == [
        ("text/html", b"<b>"),
        ("application/x-www-form-urlencoded", b"l=x%7Cy"),
    ]


@pytest.mark.parametrize(
    ("media_type", "is_list", "value", "contents"),
    [
        ("application/x-ndjson", False, [{"a": 1}, 2], [b'{"a":1}\n2\n']),
        ("application/json-seq", False, [1], [b"\x1e1\n"]),
        ("application/yaml", False, {"a": 1}, [b'{"a":1}']),
        ("application/x-www-form-urlencoded", True, [{"a": "x y"}, {"a": "z"}], [b"a=x+y", b"a=z"]),
        ("application/x-www-form-urlencoded", False, "a=1", [b"a=1"]),
    ],
)
def test_structure_is_written_in_the_type_of_its_part(
    media_type: str, is_list: bool, value: object, contents: list[bytes]
) -> None:
    """OpenAPI: `contentType` of an encoding determines the form of a part's value; texts have it already."""
    found = parts({"q": value}, FieldPlan(name="q", media_type=media_type, is_list=is_list))

    assert [(item.content_type, item.content) for item in found] == [(media_type, content) for content in contents]
