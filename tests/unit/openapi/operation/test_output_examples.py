"""Examples of responses: constraints that an output schema loses by them, and the reason to leave it out."""

from typing import Any

import pytest

from gateway.domain.updates.import_reports import ExampleCounts
from tests.support.openapi import compile_it, definition_of, document, operation

PET: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
REF = {"$ref": "#/components/schemas/Pet"}
TEXT = "application/json"
WHERE = "#/paths/~1x/get/responses"


def answers(media: Any, *, status: str = "200", **more: Any) -> dict[str, Any]:
    """A document with one response."""
    return operation({"responses": {status: {"content": {TEXT: media}}}}, **more)


def output_of(raw: dict[str, Any]) -> Any:
    """The output schema of the one tool, if it lists one."""
    (made,) = compile_it(raw, output_schemas=True).operations
    return definition_of(made).get("outputSchema")


def counts(raw: dict[str, Any]) -> ExampleCounts | None:
    """Counts of the report."""
    return compile_it(raw, output_schemas=True).report.response_examples


@pytest.mark.parametrize(
    ("schema", "example", "listed"),
    [
        (PET, {"id": 1}, PET),
        (PET, '{"id": 1}', PET),
        (PET, {}, {"type": "object", "properties": {"id": {"type": "integer"}}}),
        ({"properties": PET["properties"]}, '{"id": 1}', {"type": "object", "properties": PET["properties"]}),
        (PET, {"id": None}, {**PET, "properties": {"id": {"type": ["integer", "null"]}}}),
        (PET, {"id": "a"}, {**PET, "properties": {"id": {"type": ["integer", "string"]}}}),
        ({**PET, "additionalProperties": False}, {"id": 1, "a": 2}, PET),
    ],
)
def test_an_output_constraint_that_an_example_contradicts_is_relaxed(schema: Any, example: Any, listed: Any) -> None:
    """Ours: a client does not refuse a result that the document shows; examples are not listed (OAS-8)."""
    assert output_of(answers({"schema": schema, "example": example})) == listed


def test_overlapping_branches_take_an_example_of_both() -> None:
    """Ours: a choice that nothing decides is `anyOf` in results too (OAS-8)."""
    raw = answers({"schema": {"oneOf": [PET, {"type": "object"}]}, "example": {"id": 1}})

    assert output_of(raw)["anyOf"] == [PET, {"type": "object"}]
    assert counts(raw) == ExampleCounts(accepted=1)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"schema": PET, "example": {"id": [1]}}, f"{WHERE}/200/content/application~1json/example"),
    ({"schema": PET, "example": [{"id": 1}]}, f"{WHERE}/200/content/application~1json/example"),
    (
        {"schema": PET, "examples": {"a": {"value": None}}},
        f"{WHERE}/200/content/application~1json/examples/a/value",
    ),
    ({"schema": PET, "examples": {"a": {"$ref": "#/components/examples/E"}}}, "#/components/examples/E/value"),
    ({"schema": {**PET, "example": None}}, f"{WHERE}/200/content/application~1json/schema/example"),
    ({"schema": {"properties": {}}, "example": "text"}, f"{WHERE}/200/content/application~1json/example"),
    ({"schema": {"anyOf": [REF, {"type": "object", "properties": {"a": {}}}]}}, "#/components/schemas/Pet/example"),
    (
        {"schema": {"type": "object", "properties": {"pets": {"type": "array", "items": REF}}}},
        "#/components/schemas/Pet/example",
    ),
]


@pytest.mark.parametrize(("media", "pointer"), REFUSED)
def test_a_schema_that_refuses_an_example_is_not_listed(media: Any, pointer: str) -> None:
    """Ours: a result without a schema is right, one that clients refuse is lost (OAS-8)."""
    components: dict[str, Any] = {
        "schemas": {"Pet": {**PET, "example": {"id": {}}}},
        "examples": {"E": {"value": {"id": []}}},
    }
    raw = answers(media, components=components)
    (warning,) = compile_it(raw, output_schemas=True).report.warnings

    assert output_of(raw) is None
    assert warning.startswith(f"/paths/~1x/get/responses: the example at {pointer} does not fit its schema: ")
    assert warning.endswith("; the tool lists no output schema")
    assert counts(raw) == ExampleCounts(refused=1)
    assert compile_it(raw, output_schemas=True).report.operations[0].reasons == ()


def test_errors_and_other_media_types_count_nothing() -> None:
    """Ours: a schema is that of JSON successes, so other examples have no effect on it (OAS-8)."""
    wrong = {TEXT: {"schema": PET, "example": 1}}
    raw = operation(
        {
            "responses": {
                "200": {
                    "content": {TEXT: {"schema": PET}, "application/xml": {"schema": PET, "example": "<id>1</id>"}}
                },
                "404": {"content": wrong},
                "default": {"content": wrong},
            }
        }
    )

    assert output_of(raw) == PET
    assert counts(raw) == ExampleCounts()
    assert compile_it(raw).report.response_examples is None


def test_each_of_several_responses_may_have_its_example() -> None:
    """Ours: results of all successes fit one schema (OAS-8)."""
    media = {"200": {"schema": PET, "example": {"id": 1}}, "202": {"schema": {**PET, "required": ["job"]}}}
    media["202"]["example"] = {"job": "a"}
    raw = operation({"responses": {status: {"content": {TEXT: found}} for status, found in media.items()}})

    assert counts(raw) == ExampleCounts(accepted=2)


def test_examples_of_swagger_are_those_of_their_media_type() -> None:
    """Swagger 2.0: a response has its examples by media type (OAS-8)."""
    response: dict[str, Any] = {"schema": PET, "examples": {TEXT: {"id": {}}, "application/xml": "<id/>"}}
    raw: dict[str, Any] = {
        "swagger": "2.0",
        "info": {},
        "host": "api.example.com",
        "produces": [TEXT],
        "paths": {"/x": {"get": {"responses": {"200": response}}}},
    }
    (warning,) = compile_it(raw, output_schemas=True).report.warnings

    assert f"{WHERE}/200/examples/application~1json does not fit" in warning


def test_a_request_keeps_its_schema_where_a_response_contradicts_it() -> None:
    """Ours: examples of responses are no evidence about requests (OAS-8)."""
    body = {"content": {TEXT: {"schema": REF}}}
    response = {"content": {TEXT: {"schema": REF, "example": {}}}}
    raw = document(
        {"/x": {"post": {"requestBody": body, "responses": {"200": response}}}}, components={"schemas": {"Pet": PET}}
    )
    (made,) = compile_it(raw, output_schemas=True).operations
    definition = definition_of(made)

    assert definition["inputSchema"]["$defs"]["Pet"] == PET
    assert "required" not in definition["outputSchema"]["$defs"]["Pet"]
