"""Swagger 2.0: the same tools as from OpenAPI 3, nothing lost."""

import json
from typing import Any
from urllib.parse import parse_qsl

import pytest

from gateway.domain.http.plans import BodyKind, FieldPlan, Location, SchemeKind, Style
from gateway.domain.updates.import_reports import Status
from gateway.upstream.serialize.request_builder import RequestBuilder
from tests.support.openapi import compile_it, definition_of, fate, input_of, only


def swagger(node: dict[str, Any], *, path: str = "/x", method: str = "post", **more: Any) -> dict[str, Any]:
    return {
        "swagger": "2.0",
        "info": {"title": "T", "version": "1"},
        "host": "api.example.com",
        "paths": {path: {method: {"operationId": "op", **node}}},
        **more,
    }


def parameter(**node: Any) -> dict[str, Any]:
    return swagger({"parameters": [{"name": "p", "type": "string", **node}]}, method="get")


@pytest.mark.parametrize(
    ("more", "origin", "path"),
    [
        ({}, "https://api.example.com", "/x"),
        ({"schemes": ["http", "https"], "basePath": "/v1/"}, "https://api.example.com", "/v1/x"),
        ({"schemes": ["http"], "basePath": "v1"}, "http://api.example.com", "/v1/x"),
        ({"host": "h:81", "schemes": ["http"]}, "http://h:81", "/x"),
        ({"host": "http://h:81/"}, "http://h:81", "/x"),
        ({"host": "http://h/base", "basePath": "v1", "schemes": ["https"]}, "https://h", "/base/v1/x"),
    ],
)
def test_host_path_and_schemes_make_the_server(more: dict[str, Any], origin: str, path: str) -> None:
    """Swagger 2.0: https where there is a choice; a host that is written as a URL is understood."""
    plan = only({**swagger({}), **more}).plan

    assert (plan.origin, plan.path) == (origin, path)


def test_without_a_host_it_is_that_of_the_document() -> None:
    """Swagger 2.0: host and scheme default to those of the document."""
    raw = swagger({})
    assert only(raw, document_url="http://docs.example/s.json").plan.origin == "http://api.example.com"
    del raw["host"]
    assert only(raw, document_url="http://docs.example/s.json").plan.origin == "http://docs.example"
    assert fate(raw).status is Status.SKIPPED


def test_schemes_of_an_operation_count() -> None:
    """Swagger 2.0: an operation may override the schemes."""
    assert only(swagger({"schemes": ["http"]}, schemes=["https"])).plan.origin == "http://api.example.com"


def test_a_parameter_becomes_an_argument_with_all_its_constraints() -> None:
    """Swagger 2.0: types and limits belong to the parameter itself."""
    raw = parameter(
        **{"in": "query", "type": "integer", "minimum": 1, "format": "int32", "description": "d", "required": True}
    )

    assert input_of(raw) == {
        "type": "object",
        "properties": {"p": {"type": "integer", "minimum": 1, "format": "int32", "description": "d"}},
        "required": ["p"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("place", "written", "style", "explode"),
    [
        ("query", None, Style.FORM, False),
        ("query", "csv", Style.FORM, False),
        ("query", "multi", Style.FORM, True),
        ("query", "ssv", Style.SPACE, False),
        ("query", "tsv", Style.TAB, False),
        ("query", "pipes", Style.PIPE, False),
        ("header", "csv", Style.SIMPLE, False),
        ("header", "pipes", Style.PIPE, False),
        ("header", "ssv", Style.SPACE, False),
    ],
)
def test_collection_formats_are_styles(place: str, written: str | None, style: Style, explode: bool) -> None:
    """Swagger 2.0: collectionFormat."""
    node = {"in": place, "type": "array", "items": {"type": "string"}}
    (plan,) = only(parameter(**node, **({"collectionFormat": written} if written else {}))).plan.parameters

    assert (plan.style, plan.explode) == (style, explode)


def test_the_body_parameter_is_the_body() -> None:
    """Swagger 2.0: `in: body`, with `consumes` of the operation before the document's, references as they are."""
    raw = swagger(
        {"parameters": [{"$ref": "#/parameters/Thing"}], "consumes": ["application/vnd.x+json"]},
        consumes=["application/xml"],
        parameters={
            "Thing": {
                "name": "thing",
                "in": "body",
                "required": True,
                "description": "d",
                "schema": {"$ref": "#/definitions/T"},
            }
        },
        definitions={"T": {"type": "object", "properties": {"a": {"type": "string", "x-nullable": True}}}},
    )
    made = only(raw)

    assert made.plan.body is not None
    assert made.plan.body.media_type == "application/vnd.x+json"
    assert input_of(raw) == {
        "type": "object",
        "properties": {"body": {"$ref": "#/$defs/T", "description": "d"}},
        "required": ["body"],
        "additionalProperties": False,
        "$defs": {"T": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}},
    }


def test_form_parameters_are_one_form() -> None:
    """Swagger 2.0: `in: formData` without a file is a form, lists follow their collectionFormat."""
    raw = swagger(
        {
            "parameters": [
                {"name": "a", "in": "formData", "type": "string", "required": True, "description": "d"},
                {"name": "b", "in": "formData", "type": "array", "items": {"type": "string"}},
                {"name": "c", "in": "formData", "type": "array", "items": {}, "collectionFormat": "multi"},
                {"name": "a", "in": "query", "type": "string"},
            ]
        },
        consumes=["application/json"],
    )
    body = only(raw).plan.body

    assert body is not None
    assert body.kind is BodyKind.FORM
    assert body.required
    assert body.fields == (
        FieldPlan(name="b", explode=False, is_styled=True),
        FieldPlan(name="c", is_styled=True),
    )
    listed = input_of(raw)["properties"]["body"]
    assert set(listed["properties"]) == {"a", "b", "c"}
    assert listed["required"] == ["a"]
    assert listed["properties"]["a"] == {"type": "string", "description": "d"}


def test_a_file_in_a_form_makes_it_multipart() -> None:
    """Swagger 2.0: a form with a file is sent in parts."""
    node = {"name": "f", "in": "formData", "type": "file", "required": True}
    made = only(swagger({"parameters": [node, {"name": "n", "in": "formData", "type": "string"}]}))

    assert made.plan.body is not None
    assert (made.plan.body.kind, made.plan.body.media_type) == (BodyKind.MULTIPART, "multipart/form-data")
    assert made.plan.body.fields == (FieldPlan(name="f", is_file=True),)
    assert set(definition_of(made)["inputSchema"]["properties"]["body"]["properties"]["f"]["properties"]) == {
        "base64",
        "filename",
        "content_type",
    }


def test_parameters_of_the_path_are_inherited() -> None:
    """Swagger 2.0: also body and form parameters, overridden by name and place."""
    raw = swagger({"parameters": [{"name": "q", "in": "query", "type": "integer"}]}, path="/x/{id}")
    raw["paths"]["/x/{id}"]["parameters"] = [
        {"name": "id", "in": "path", "required": True, "type": "string"},
        {"name": "q", "in": "query", "type": "string"},
        {"name": "b", "in": "body", "schema": {"type": "array"}},
    ]

    assert input_of(raw)["properties"] == {
        "id": {"type": "string"},
        "q": {"type": "integer"},
        "body": {"type": "array", "items": {}},
    }
    assert [item.location for item in only(raw).plan.parameters] == [Location.PATH, Location.QUERY]


def test_security_definitions_are_schemes() -> None:
    """Swagger 2.0: basic, apiKey and oauth2."""
    raw = swagger(
        {},
        security=[{"b": []}, {"k": []}],
        securityDefinitions={
            "b": {"type": "basic"},
            "k": {"type": "apiKey", "in": "query", "name": "k"},
            "o": {"type": "oauth2", "flow": "implicit"},
        },
    )

    assert [alternative[0].kind for alternative in only(raw).plan.security] == [
        SchemeKind.BASIC,
        SchemeKind.API_KEY_QUERY,
    ]
    assert compile_it(raw).scheme_names == ("b", "k", "o")


def test_produced_media_types_are_requested() -> None:
    """Swagger 2.0: `produces`."""
    raw = swagger({"produces": ["text/csv"], "responses": {"200": {"description": "ok"}}})

    assert only(raw).plan.accept == "text/csv, */*;q=0.5"


def test_methods_of_version_three_are_ignored() -> None:
    """Swagger 2.0: there is no trace, and no requestBody."""
    raw = swagger({"requestBody": {"content": {"application/json": {}}}})

    assert only(raw).plan.body is None


@pytest.mark.parametrize(
    "node", [7, {"$ref": "https://example.com/p.json"}, {"name": "p", "in": "nowhere", "required": True}]
)
def test_a_malformed_parameter_skips_its_operation(node: object) -> None:
    """Ours: per operation, never per document."""
    raw = swagger({"parameters": [node]})
    raw["paths"]["/ok"] = {"get": {}}

    assert [report.status for report in compile_it(raw).report.operations] == [Status.SKIPPED, Status.OK]


def test_a_path_item_may_be_a_reference() -> None:
    """Swagger 2.0: a local reference is followed, another one costs its path."""
    raw = swagger({})
    raw["x-items"] = {"shared": {"get": {"summary": "Shared"}}}
    raw["paths"] = {"/a": {"$ref": "#/x-items/shared"}, "/b": {"$ref": "b.yaml"}}
    result = compile_it(raw)

    assert [definition_of(made)["description"] for made in result.operations] == ["Shared"]
    assert "b.yaml" in result.report.warnings[0]


@pytest.mark.parametrize(
    ("flow", "kind"),
    [
        ("application", SchemeKind.CLIENT_CREDENTIALS),
        ("implicit", SchemeKind.BEARER),
        ("password", SchemeKind.BEARER),
        ("accessCode", SchemeKind.BEARER),
    ],
)
def test_the_flows_of_oauth(flow: str, kind: SchemeKind) -> None:
    """Swagger 2.0: `application` is what OpenAPI calls client credentials."""
    scheme: dict[str, Any] = {"type": "oauth2", "flow": flow, "tokenUrl": "https://auth.example/t", "scopes": {}}
    made = only(swagger({"security": [{"o": []}]}, securityDefinitions={"o": scheme}))

    assert made.plan.security[0][0].kind is kind


@pytest.mark.parametrize(
    ("collection", "pairs"),
    [
        ("csv", [("p", "a,b")]),
        ("ssv", [("p", "a b")]),
        ("tsv", [("p", "a\tb")]),
        ("pipes", [("p", "a|b")]),
        ("multi", [("p", "a"), ("p", "b")]),
    ],
)
@pytest.mark.parametrize("place", ["query", "formData"])
def test_collection_formats_on_the_wire(place: str, collection: str, pairs: list[tuple[str, str]]) -> None:
    """Swagger 2.0: the form of a list, in the query and in forms."""
    node = {"name": "p", "in": place, "type": "array", "items": {"type": "string"}, "collectionFormat": collection}
    builder = RequestBuilder(only(swagger({"parameters": [node]})).plan)

    if place == "query":
        written = builder.build({"p": ["a", "b"]}).url.partition("?")[2]
    else:
        written = (builder.build({"body": {"p": ["a", "b"]}}).body or b"").decode()
    assert parse_qsl(written) == pairs


@pytest.mark.parametrize("is_shared", [False, True])
def test_responses_without_produces_are_json(is_shared: bool) -> None:
    """Swagger 2.0: a response with a schema is an object, in place or shared; the report has a note (OAS-3)."""
    response = {"description": "ok", "schema": {"type": "object", "properties": {"f": {"type": "string"}}}}
    shown: dict[str, Any] = {"$ref": "#/responses/r"} if is_shared else response
    made = compile_it(swagger({"responses": {"200": shown}}, responses={"r": response}), output_schemas=True)
    definition = json.loads(made.operations[0].definition)

    assert "Returns: 200, object (f)" in definition["description"]
    assert "f" in definition["outputSchema"]["properties"]
    assert made.report.notes == ("responses with a schema are read as JSON where `produces` is missing",)
