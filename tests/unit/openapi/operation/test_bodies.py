"""Request bodies: the media type that is sent, and its argument."""

from typing import Any

import pytest

from gateway.domain.http.plans import BodyKind, BodyPlan, FieldPlan, Style
from gateway.domain.updates.import_reports import Status
from tests.support.openapi import body_of, fate, input_of, only, operation, with_body

OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}


def plan_of(content: dict[str, Any], *, required: bool = True) -> BodyPlan:
    made = only(operation({"requestBody": {"required": required, "content": content}}, method="post"))
    assert made.plan.body is not None
    return made.plan.body


@pytest.mark.parametrize(
    ("types", "kind", "taken"),
    [
        (["application/json"], BodyKind.JSON, "application/json"),
        (["application/json; charset=utf-8"], BodyKind.JSON, "application/json; charset=utf-8"),
        (["application/vnd.api+json"], BodyKind.JSON, "application/vnd.api+json"),
        (["*/*"], BodyKind.JSON, "application/json"),
        (["multipart/form-data", "application/json"], BodyKind.JSON, "application/json"),
        (["application/xml", "application/x-www-form-urlencoded"], BodyKind.XML, "application/xml"),
        (["application/x-www-form-urlencoded", "application/xml"], BodyKind.FORM, "application/x-www-form-urlencoded"),
        (["multipart/form-data"], BodyKind.MULTIPART, "multipart/form-data"),
        (["application/x-ndjson"], BodyKind.JSON_LINES, "application/x-ndjson"),
        (["application/yaml"], BodyKind.JSON, "application/yaml"),
        (
            ["application/json-patch+json", "application/merge-patch+json"],
            BodyKind.JSON,
            "application/merge-patch+json",
        ),
        (["text/plain"], BodyKind.TEXT, "text/plain"),
        (["application/octet-stream"], BodyKind.BYTES, "application/octet-stream"),
        (["image/png"], BodyKind.BYTES, "image/png"),
        (["text/csv", "application/octet-stream"], BodyKind.TEXT, "text/csv"),
    ],
)
def test_json_is_preferred_among_several(types: list[str], kind: BodyKind, taken: str) -> None:
    """Ours: JSON, else the first that can be written; the declared type is kept as written."""
    plan = plan_of({media_type: {"schema": OBJECT} for media_type in types})

    assert (plan.kind, plan.media_type, plan.required) == (kind, taken, True)


def test_an_optional_body_stays_optional() -> None:
    """OpenAPI: `required` is false unless it is true."""
    raw = operation({"requestBody": {"content": {"application/json": {"schema": OBJECT}}}}, method="post")

    assert "required" not in input_of(raw)
    assert input_of(raw)["properties"]["body"] == OBJECT


@pytest.mark.parametrize("schema", [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}, {}])
def test_any_json_can_be_a_body(schema: dict[str, Any]) -> None:
    """Ours: a body is one argument, whatever its type."""
    assert body_of(schema) == schema


def test_a_file_is_requested_as_a_file() -> None:
    """Ours: bytes are `{"base64", "filename", "content_type"}`."""
    listed = body_of({"type": "string", "format": "binary"}, media_type="application/octet-stream")

    assert set(listed["properties"]) == {"base64", "filename", "content_type"}
    assert listed["required"] == ["base64"]


def test_text_is_requested_as_text() -> None:
    """Ours: a text body is a string even where its schema has another type."""
    assert body_of({"type": "string", "maxLength": 5}, media_type="text/plain") == {"type": "string", "maxLength": 5}
    assert body_of(OBJECT, media_type="text/plain") == {"type": "string"}
    assert body_of({"type": "string"}, media_type="application/sdp") == {"type": "string"}


@pytest.mark.parametrize("media_type", ["application/protobuf", "application/xml; charset=koi8-r", "application/cbor"])
def test_a_body_that_cannot_be_sent_has_its_reason(media_type: str) -> None:
    """Ours: a required one skips the operation, an optional one is not offered."""
    optional = operation({"requestBody": {"content": {media_type: {"schema": OBJECT}}}}, method="post")

    assert fate(with_body(OBJECT, media_type=media_type)).status is Status.SKIPPED
    assert fate(optional).status is Status.DEGRADED
    assert media_type in fate(optional).reasons[0]
    assert only(optional).plan.body is None


@pytest.mark.parametrize("media_type", ["", "json", "a/b\r\nX: y", "text/plain; charset=koi8-r"])
def test_a_media_type_that_no_header_or_encoder_takes_is_not_sent(media_type: str) -> None:
    """Ours: nothing of a document reaches a header unchecked."""
    assert fate(with_body({"type": "string"}, media_type=media_type)).status is Status.SKIPPED


def test_form_fields_follow_their_encoding() -> None:
    """OpenAPI: `encoding` by property; without one objects are JSON and lists repeat."""
    schema: dict[str, Any] = {
        "allOf": [{"properties": {"plain": {"type": "string"}, "tags": {"type": "array", "items": {}}}}],
        "properties": {
            "csv": {"type": "array", "items": {"type": "string"}},
            "deep": {"type": "object"},
            "object": {"type": "object"},
            "objects": {"type": "array", "items": {"type": "object"}},
            "raw": {"type": "string"},
        },
    }
    encoding: dict[str, Any] = {
        "csv": {"style": "form", "explode": False},
        "deep": {"style": "deepObject", "explode": True},
        "raw": {"allowReserved": True},
        "plain": {"contentType": "text/plain"},
    }
    content: dict[str, Any] = {"application/x-www-form-urlencoded": {"schema": schema, "encoding": encoding}}

    assert {field.name: field for field in plan_of(content).fields} == {
        "csv": FieldPlan(name="csv", explode=False, is_styled=True),
        "deep": FieldPlan(name="deep", style=Style.DEEP_OBJECT, is_styled=True),
        "raw": FieldPlan(name="raw", allow_reserved=True, is_styled=True),
        "object": FieldPlan(name="object", media_type="application/json"),
        "objects": FieldPlan(name="objects", media_type="application/json", is_list=True),
    }


def test_a_form_is_an_object() -> None:
    """Ours: a value that is sent as a form is checked to be one."""
    listed = body_of({"properties": {"a": {}}}, media_type="application/x-www-form-urlencoded")

    assert listed == {"type": "object", "allOf": [{"properties": {"a": {}}}]}


def test_a_body_is_found_behind_references() -> None:
    """OpenAPI: request bodies may be shared."""
    shared = {"required": True, "description": "The thing.", "content": {"application/json": {"schema": OBJECT}}}
    raw = operation(
        {"requestBody": {"$ref": "#/components/requestBodies/B"}},
        method="post",
        components={"requestBodies": {"B": shared}},
    )

    assert input_of(raw)["properties"]["body"] == {**OBJECT, "description": "The thing."}


@pytest.mark.parametrize(
    "body", [1, "x", [], {"$ref": "other.yaml"}, {"required": True}, {"required": True, "content": []}]
)
def test_a_malformed_body_skips_the_operation(body: object) -> None:
    """Ours: the required content is unknown."""
    assert fate(operation({"requestBody": body}, method="post")).status is Status.SKIPPED
