"""XML documents from values, read back by the standard library's parser."""

from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.http.plans import XmlKind, XmlNode
from gateway.upstream.serialize.percent_encoding import Unwritable
from gateway.upstream.serialize.request_builder import RequestBuilder
from gateway.upstream.serialize.xml import xml_writer
from tests.support.openapi import only, with_body
from tests.unit.upstream.plans import header

XML_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=20)
NAME = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,7}", fullmatch=True)


def body(schema: dict[str, Any], value: object, **more: Any) -> str:
    """The document that a body schema and a value make."""
    made = only(with_body(schema, media_type="application/xml", **more))
    request = RequestBuilder(made.plan).build({"body": value})
    assert header(request, "Content-Type") == "application/xml"
    return (request.body or b"").decode()


def prop(schema: dict[str, Any], value: object) -> str:
    """Content of the root for one property `p`."""
    document = body({"type": "object", "properties": {"p": schema}, "xml": {"name": "r"}}, {"p": value})
    return document.removeprefix("<r>").removesuffix("</r>")


STRINGS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "value", "written"),
    [
        ({"type": "string"}, "a", "<p>a</p>"),
        ({"type": "string"}, "", "<p></p>"),
        ({"type": "boolean"}, True, "<p>true</p>"),
        ({"type": "number"}, 2.50, "<p>2.5</p>"),
        ({"type": "string", "xml": {"name": "q"}}, "a", "<q>a</q>"),
        ({"type": "string", "xml": {"prefix": "s", "namespace": "urn:s"}}, "a", '<s:p xmlns:s="urn:s">a</s:p>'),
        ({"type": "string", "xml": {"namespace": "urn:s"}}, "a", '<p xmlns="urn:s">a</p>'),
        (STRINGS, ["a", "b"], "<p>a</p><p>b</p>"),
        ({**STRINGS, "xml": {"name": "ps"}}, ["a", "b"], "<p>a</p><p>b</p>"),
        ({**STRINGS, "xml": {"wrapped": True}}, ["a", "b"], "<p><p>a</p><p>b</p></p>"),
        ({**STRINGS, "xml": {"name": "ps", "wrapped": True}}, ["a"], "<ps><ps>a</ps></ps>"),
        ({"type": "array", "items": {"type": "string", "xml": {"name": "i"}}}, ["a"], "<i>a</i>"),
        (
            {
                "type": "array",
                "items": {"type": "string", "xml": {"name": "i"}},
                "xml": {"name": "ps", "wrapped": True},
            },
            ["a", "b"],
            "<ps><i>a</i><i>b</i></ps>",
        ),
        ({**STRINGS, "xml": {"wrapped": True}}, [], "<p/>"),
        ({**STRINGS, "xml": {"nodeType": "element"}}, ["a"], "<p><p>a</p></p>"),
        ({"type": "object", "properties": {"k": {"type": "integer"}}}, {"k": 1}, "<p><k>1</k></p>"),
        ({"type": "object"}, {"free": {"er": [1, 2]}}, "<p><free><er>1</er><er>2</er></free></p>"),
    ],
)
def test_the_examples_of_openapi(schema: dict[str, Any], value: object, written: str) -> None:
    """OpenAPI: the XML Object, names, attributes, prefixes, namespaces, arrays (3.1.1 section 4.8.26)."""
    assert prop(schema, value) == written


def test_attributes_belong_to_their_element() -> None:
    """OpenAPI: `attribute`, also with a prefix whose namespace is declared there."""
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "xml": {"attribute": True}},
            "lang": {"type": "string", "xml": {"attribute": True, "prefix": "x", "namespace": "urn:x"}},
            "name": {"type": "string"},
        },
        "xml": {"name": "pet"},
    }
    document = body(schema, {"name": "a", "id": 7, "lang": 'e"<\n'})

    assert document == '<pet xmlns:x="urn:x" id="7" x:lang="e&quot;&lt;&#10;"><name>a</name></pet>'
    root = ET.fromstring(document)
    assert root.attrib == {"id": "7", "{urn:x}lang": 'e"<\n'}


def test_text_beside_attributes() -> None:
    """OpenAPI 3.2: `nodeType: text` and `cdata`."""
    schema = {
        "type": "object",
        "xml": {"name": "r"},
        "properties": {
            "unit": {"type": "string", "xml": {"nodeType": "attribute"}},
            "value": {"type": "number", "xml": {"nodeType": "text"}},
            "raw": {"type": "string", "xml": {"nodeType": "cdata"}},
        },
    }

    assert body(schema, {"value": 1, "unit": "m"}) == '<r unit="m">1</r>'
    assert body(schema, {"raw": "a]]>b<"}) == "<r><![CDATA[a]]]]><![CDATA[>b<]]></r>"
    assert ET.fromstring(body(schema, {"raw": "a]]>b<"})).text == "a]]>b<"


@pytest.mark.parametrize(
    ("schema", "components", "root"),
    [
        ({"type": "object"}, {}, "root"),
        ({"$ref": "#/components/schemas/Pet"}, {"Pet": {"type": "object"}}, "Pet"),
        ({"$ref": "#/components/schemas/Pet"}, {"Pet": {"type": "object", "xml": {"name": "pet"}}}, "pet"),
        ({"allOf": [{"$ref": "#/components/schemas/Pet"}]}, {"Pet": {"type": "object", "xml": {"name": "pet"}}}, "pet"),
        (
            {"$ref": "#/components/schemas/Pet", "xml": {"name": "own"}},
            {"Pet": {"type": "object", "xml": {"name": "pet"}}},
            "own",
        ),
    ],
)
def test_the_root_has_a_name(schema: dict[str, Any], components: dict[str, Any], root: str) -> None:
    """OpenAPI: `xml.name`, else the name of the component."""
    assert body(schema, {}, components={"schemas": components}) == f"<{root}/>"


def test_a_list_has_one_root() -> None:
    """XML: a document has one outermost element."""
    pets = {"type": "array", "items": {"type": "object", "xml": {"name": "pet"}}, "xml": {"name": "pets"}}

    assert body(pets, [{"a": 1}, {"a": 2}]) == "<pets><pet><a>1</a></pet><pet><a>2</a></pet></pets>"


def test_schemas_may_go_in_circles() -> None:
    """Ours: a node tree of any depth is written by one plan."""
    node: dict[str, Any] = {
        "type": "object",
        "xml": {"name": "node"},
        "properties": {
            "id": {"type": "integer", "xml": {"attribute": True}},
            "children": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/Node"},
                "xml": {"wrapped": True, "name": "kids"},
            },
        },
    }
    document = body(
        {"$ref": "#/components/schemas/Node"},
        {"id": 1, "children": [{"id": 2, "children": [{"id": 3}]}]},
        components={"schemas": {"Node": node}},
    )

    assert document == ('<node id="1"><kids><node id="2"><kids><node id="3"/></kids></node></kids></node>')


def test_members_of_merged_and_chosen_schemas_keep_their_names() -> None:
    """OpenAPI: `allOf` and `oneOf` have the meaning of their parts."""
    schema = {
        "xml": {"name": "r"},
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "string", "xml": {"name": "A"}}}},
            {"oneOf": [{"properties": {"b": {"type": "string", "xml": {"attribute": True}}}}]},
        ],
    }

    assert body(schema, {"a": "1", "b": "2"}) == '<r b="2"><A>1</A></r>'


def test_null_is_nil_and_absent_is_absent() -> None:
    """Ours: an element that is null declares it; an attribute that is null is left out."""
    schema = {"type": "object", "properties": {"a": {}, "b": {"xml": {"attribute": True}}}, "xml": {"name": "r"}}
    root = ET.fromstring(body(schema, {"a": None, "b": None}))

    assert root.attrib == {}
    assert [child.attrib for child in root] == [{"{http://www.w3.org/2001/XMLSchema-instance}nil": "true"}]
    assert body(schema, {}) == "<r/>"


def test_a_charset_is_kept_without_losing_characters() -> None:
    """Ours: a character that the declared charset lacks is a character reference."""
    made = only(with_body({"type": "object"}, media_type="application/xml; charset=iso-8859-1"))
    request = RequestBuilder(made.plan).build({"body": {"a": "é中"}})

    assert request.body == b"<root><a>\xe9&#20013;</a></root>"


@given(st.dictionaries(NAME, XML_TEXT, max_size=4))
def test_texts_read_back(value: dict[str, str]) -> None:
    """Ours: a parser finds the same names and texts."""
    root = ET.fromstring(xml_writer((XmlNode(),), 0, "r")(value))

    assert [(child.tag, child.text or "") for child in root] == list(value.items())


@given(NAME, XML_TEXT)
def test_attributes_read_back(name: str, value: str) -> None:
    """Ours: also line breaks and quotes."""
    nodes = (XmlNode(members=((name, 1),)), XmlNode(kind=XmlKind.ATTRIBUTE))
    root = ET.fromstring(xml_writer(nodes, 0, "r")({name: f"{value}\t\n\r\"'"}))

    assert root.attrib == {name: f"{value}\t\n\r\"'"}


@pytest.mark.parametrize(
    "value",
    [{"a b": 1}, {"1a": 1}, {"a": "\x00"}, {"a": "\ud800"}, {"<x>": 1}, {"": 1}, {"a": {"b\n": 1}}],
)
def test_characters_that_xml_lacks_are_refused(value: object) -> None:
    """XML 1.0: names and characters that no document has."""
    with pytest.raises(Unwritable):
        xml_writer((XmlNode(),), 0, "r")(value)


def test_depth_is_bounded() -> None:
    """Ours: a value nested beyond reason is an error of the arguments."""
    deep: object = "x"
    for _ in range(100):
        deep = {"a": deep}
    lists: object = []
    for _ in range(100):
        lists = [lists]

    for value in (deep, lists):
        with pytest.raises(Unwritable):
            xml_writer((XmlNode(),), 0, "r")(value)
