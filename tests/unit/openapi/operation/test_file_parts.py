"""Bodies in parts and of several types: what is asked of the caller, and how each part is planned."""

from typing import Any

import pytest

from gateway.domain.http.plans import BodyKind, BodyPlan, FieldPlan, RequestPlan, Style
from gateway.domain.updates.import_reports import Status
from gateway.upstream.serialize.request_builder import RequestBuilder
from tests.support.openapi import body_of, compile_it, definition_of, fate, input_of, only, operation

FORM_DATA = "multipart/form-data"
BINARY: dict[str, Any] = {"type": "string", "format": "binary"}
FILE_MEMBERS = {"base64", "filename", "content_type"}


def taking(content: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A document with one operation that takes this body."""
    return operation({"requestBody": {"required": True, "content": content}}, method="post", **more)


def in_parts(properties: dict[str, Any], encoding: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A document with one operation that takes a body in parts."""
    media = {"schema": {"type": "object", "properties": properties}, "encoding": encoding or {}}
    return taking({FORM_DATA: media}, **more)


def plan_of(document: dict[str, Any]) -> RequestPlan:
    """The plan of the one operation; what an import accepts, a call can write."""
    made = only(document).plan
    RequestBuilder(made)
    return made


def fields_of(document: dict[str, Any]) -> dict[str, FieldPlan]:
    """The plans of the parts that are not written the default way."""
    body = plan_of(document).body
    assert body is not None
    return {field.name: field for field in body.fields}


@pytest.mark.parametrize(
    "schema",
    [
        BINARY,
        {"type": ["string", "null"], "format": "binary"},
        {"anyOf": [BINARY, {"type": "null"}]},
        {"type": "string", "contentMediaType": "application/octet-stream"},
        {"contentMediaType": "image/png"},
        {"$ref": "#/components/schemas/File"},
        {"oneOf": [{"type": "string"}, {"$ref": "#/components/schemas/File"}]},
    ],
)
def test_every_declaration_of_a_file_becomes_a_file(schema: dict[str, Any]) -> None:
    """OpenAPI: `format: binary` before 3.1, `contentMediaType` since; also as one of several (3.1.1 section 4.8.14)."""
    document = in_parts({"f": schema}, components={"schemas": {"File": BINARY}})
    asked = input_of(document)["properties"]["body"]["properties"]["f"]
    branches = asked.get("anyOf") or asked.get("oneOf") or [asked]

    assert any(set(branch.get("properties", ())) == FILE_MEMBERS for branch in branches)
    assert fields_of(document)["f"].is_file


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "format": "byte"},
        {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"},
        {"type": "string", "contentMediaType": "application/json"},
        {"type": "string"},
    ],
)
def test_encoded_text_stays_text(schema: dict[str, Any]) -> None:
    """OpenAPI: base64 inside a text is text on the wire too."""
    field = fields_of(in_parts({"f": schema})).get("f", FieldPlan(name="f", is_verbatim=True))

    assert (field.is_file, field.is_verbatim) == (False, True)


def test_lists_and_merged_bodies_find_their_files() -> None:
    """Ours: wherever in the body the property is declared."""
    schemas: dict[str, Any] = {
        "Base": {"type": "object", "properties": {"many": {"type": "array", "items": BINARY}}},
        "Whole": {"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"one": BINARY, "n": {}}}]},
    }
    document = taking({FORM_DATA: {"schema": {"$ref": "#/components/schemas/Whole"}}}, components={"schemas": schemas})

    assert fields_of(document) == {
        "many": FieldPlan(name="many", is_file=True, is_list=True),
        "one": FieldPlan(name="one", is_file=True),
    }
    assert '"format":"binary"' not in only(document).definition.decode()


def test_a_schema_that_parts_and_json_share_is_a_file_in_parts_only() -> None:
    """Ours: asking for a file in one place changes nothing in another."""
    document = in_parts({"f": {"$ref": "#/components/schemas/Blob"}}, components={"schemas": {"Blob": BINARY}})
    document["paths"]["/json"] = {
        "post": {
            "operationId": "json",
            "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Blob"}}}},
        }
    }
    parts, in_json = (definition_of(made)["inputSchema"] for made in compile_it(document).operations)

    assert set(parts["properties"]["body"]["properties"]["f"]["properties"]) == FILE_MEMBERS
    assert in_json["properties"]["body"] == {"$ref": "#/$defs/Blob"}
    assert in_json["$defs"]["Blob"] == BINARY


def test_parts_are_planned_by_type_and_encoding() -> None:
    """OpenAPI: the Encoding Object, and what holds without one."""
    obj: dict[str, Any] = {"type": "object", "properties": {"a": {}}}
    properties: dict[str, Any] = {
        "object": obj,
        "objects": {"type": "array", "items": obj},
        "lists": {"type": "array", "items": {"type": "array", "items": {}}},
        "xml": {**obj, "xml": {"name": "thing"}},
        "typed": {"type": "string"},
        "styled": {"type": "array", "items": {"type": "string"}},
        "both": {"type": "string"},
        "image": BINARY,
        "header": {"type": "string"},
        "plain": {"type": "string"},
        "null": {"anyOf": [obj, {"type": "null"}]},
    }
    encoding: dict[str, Any] = {
        "xml": {"contentType": "application/xml"},
        "typed": {"contentType": "text/html; charset=utf-8"},
        "styled": {"style": "pipeDelimited", "explode": False},
        "both": {"style": "form", "contentType": "text/plain"},
        "image": {"contentType": "image/png, image/jpeg, no type at all"},
        "header": {
            "headers": {
                "X-Fixed": {"schema": {"const": "v"}},
                "X-One": {"schema": {"enum": ["w"]}},
                "X-Broken": {"schema": {"const": "a\r\nb"}},
                "Content-Type": {"required": True, "schema": {"type": "string"}},
            }
        },
    }

    assert fields_of(in_parts(properties, encoding)) == {
        "object": FieldPlan(name="object", media_type="application/json"),
        "objects": FieldPlan(name="objects", media_type="application/json", is_list=True),
        "lists": FieldPlan(name="lists", media_type="application/json", is_list=True),
        "xml": FieldPlan(name="xml", media_type="application/xml", xml=0),
        "typed": FieldPlan(name="typed", media_type="text/html; charset=utf-8"),
        "styled": FieldPlan(name="styled", style=Style.PIPE, explode=False, is_styled=True, is_list=True),
        "both": FieldPlan(name="both", is_styled=True, is_list=True),
        "image": FieldPlan(name="image", media_type="image/png, image/jpeg", is_file=True),
        "header": FieldPlan(name="header", headers=(("X-Fixed", "v"), ("X-One", "w"))),
        "null": FieldPlan(name="null", media_type="application/json"),
    }


def test_a_required_header_of_a_part_without_a_value_is_reported() -> None:
    """Ours: a part that is not sent is in the report (OAS-3)."""
    headers = {"X-Free": {"required": True, "schema": {"type": "string"}}}
    report = fate(in_parts({"p": {"type": "string"}}, {"p": {"headers": headers}}))

    assert report.status is Status.DEGRADED
    assert "X-Free" in report.reasons[0]


def test_a_body_of_lines_or_unnamed_parts_is_a_list() -> None:
    """OpenAPI 3.2: `itemSchema` describes each of them."""
    item = {"type": "object", "properties": {"a": {"type": "integer"}}}

    for media_type in ("application/jsonl", "application/json-seq", "multipart/mixed"):
        document = taking({media_type: {"itemSchema": item}}, version="3.2.0")
        assert input_of(document)["properties"]["body"] == {"type": "array", "items": item}
    schema = {"type": "array", "items": item}
    assert body_of(schema, media_type="application/x-ndjson") == schema
    assert body_of(item, media_type="application/x-ndjson") == {"type": "array", "items": item}


def choices(content: dict[str, Any]) -> list[str]:
    """The types that the caller may choose from; none where there is no choice."""
    schema = input_of(taking(content))["properties"].get("content_type", {"enum": []})
    return list(schema["enum"])


JSON = {"schema": {"type": "object"}}
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"


@pytest.mark.parametrize(
    ("content", "offered"),
    [
        ({"application/json": JSON}, []),
        ({"application/json": JSON, "application/xml": JSON, "application/x-www-form-urlencoded": JSON}, []),
        ({"application/json": JSON, "application/vnd.x+json": JSON}, []),
        ({"application/json": JSON, FORM_DATA: JSON}, []),
        ({"application/json": JSON, "*/*": JSON}, []),
        (
            {"application/json": JSON, FORM_DATA: {"schema": {"properties": {"f": BINARY}}}},
            ["application/json", FORM_DATA],
        ),
        ({JSON_PATCH: JSON, MERGE: JSON}, [MERGE, JSON_PATCH]),
        ({"application/json": JSON, MERGE: JSON}, ["application/json", MERGE]),
        (
            {"application/json": JSON, "text/csv": {"schema": {"type": "string"}}},
            ["application/json", "text/csv"],
        ),
        ({"text/plain": {}, "text/markdown": {}}, ["text/plain", "text/markdown"]),
    ],
)
def test_the_type_is_an_argument_only_where_it_matters(content: dict[str, Any], offered: list[str]) -> None:
    """Ours: the same value in another notation is no choice; another value is one."""
    assert choices(content) == offered


def test_the_body_of_several_types_is_any_of_them() -> None:
    """Ours: each type accepts its values."""
    content = {"application/json": JSON, FORM_DATA: {"schema": {"type": "object", "properties": {"f": BINARY}}}}
    listed = input_of(taking(content))["properties"]

    assert [set(branch.get("properties", ())) for branch in listed["body"]["anyOf"]] == [set(), {"f"}]
    assert listed["content_type"]["default"] == "application/json"


def test_the_choice_does_not_take_the_name_of_a_parameter() -> None:
    """Ours: no argument has two meanings."""
    content = {JSON_PATCH: JSON, MERGE: JSON}
    parameters = [{"name": "content_type", "in": "query", "schema": {"type": "string"}}]
    document = operation({"parameters": parameters, "requestBody": {"content": content}}, method="patch")
    plan = plan_of(document)

    assert plan.choice == "body_content_type"
    request = RequestBuilder(plan).build({"content_type": "q", "body_content_type": JSON_PATCH, "body": []})
    assert request.url.endswith("?content_type=q")
    assert ("Content-Type", JSON_PATCH) in request.headers


def test_a_media_type_without_a_schema_is_bytes() -> None:
    """OpenAPI 3.1: a media type without a schema is raw."""
    silent: list[dict[str, Any]] = [
        {"application/x-custom": {}},
        {"application/x-custom": {"schema": {}}},
        {"*/*": {}},
    ]
    for content in silent:
        body = plan_of(taking(content)).body
        assert body is not None
        assert body.kind is BodyKind.BYTES
    assert plan_of(taking({"*/*": {"schema": BINARY}})).body == BodyPlan(
        kind=BodyKind.BYTES, media_type="application/octet-stream", required=True
    )
