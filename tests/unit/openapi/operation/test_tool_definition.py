"""Tool definitions: description, title, annotations, safety, exact bytes."""

from typing import Any

import orjson
import pytest

from gateway.domain.tenancy.policy import Safety
from tests.support.openapi import compile_it, definition_of, document, fate, only, operation


def described(**node: Any) -> str:
    text: str = definition_of(only(operation(node)))["description"]
    return text


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ({"summary": "S", "description": "D"}, "S\n\nD"),
        ({"summary": "S"}, "S"),
        ({"description": "D"}, "D"),
        ({}, "GET /x: op."),
        ({"summary": "List", "description": "List all."}, "List all."),
        ({"summary": 5, "description": ["x"]}, "GET /x: op."),
        ({"summary": "<b>S</b>", "description": "<p>One.</p><p>Two &lt;3</p>"}, "S\n\nOne.\n\nTwo <3"),
        ({"description": "Old.", "deprecated": True}, "Deprecated. Old."),
        ({"description": "a\u200b\u202eb\x00\n\tc"}, "ab\n\tc"),
    ],
)
def test_a_description_has_the_words_of_the_document(node: dict[str, Any], text: str) -> None:
    """Ours: summary and description, else method and path, nothing invisible."""
    assert described(**node) == text


def test_a_description_is_cut_at_two_thousand_characters() -> None:
    """Ours: texts are bounded."""
    assert len(described(description="x" * 5_000)) == 2_000


def test_a_definition_has_its_members_in_order_and_is_compact() -> None:
    """MCP: a tool; the bytes are listed as they are."""
    made = only(operation({"summary": "List\u200b all\nthings"}))

    assert made.definition == orjson.dumps(orjson.loads(made.definition))
    assert list(definition_of(made)) == ["name", "description", "inputSchema", "annotations"]
    titled = only(operation({"x-mcp": {"title": "All\u200b things"}, "description": "Lists."}))
    assert list(definition_of(titled)) == ["name", "title", "description", "inputSchema", "annotations"]
    assert definition_of(titled)["title"] == "All things"


@pytest.mark.parametrize(
    ("method", "read_only", "idempotent", "safety"),
    [
        ("get", True, True, Safety.SAFE),
        ("head", True, True, Safety.SAFE),
        ("options", True, True, Safety.SAFE),
        ("trace", True, True, Safety.SAFE),
        ("query", True, True, Safety.SAFE),
        ("put", False, True, Safety.MODERATE),
        ("delete", False, True, Safety.DANGEROUS),
        ("post", False, False, Safety.MODERATE),
        ("patch", False, False, Safety.MODERATE),
    ],
)
def test_annotations_are_always_explicit(method: str, read_only: bool, idempotent: bool, safety: Safety) -> None:
    """Ours: from the method, all four of them; safety alike."""
    made = only(operation({}, method=method, version="3.2.0"))

    assert made.safety is safety
    assert made.plan.idempotent is idempotent
    assert definition_of(made)["annotations"] == {
        "readOnlyHint": read_only,
        "destructiveHint": not read_only,
        "idempotentHint": idempotent,
        "openWorldHint": True,
    }


def test_additional_operations_are_tools() -> None:
    """OpenAPI 3.2: `query` and `additionalOperations`; before it they mean nothing."""
    more: dict[str, Any] = {"COPY": {}, "CONNECT": {}, "bad method": {}, "LOCK": 1}
    item: dict[str, Any] = {"query": {}, "additionalOperations": more}
    result = compile_it(document({"/x": item}, version="3.2.0"))

    assert [made.method for made in result.operations] == ["QUERY", "COPY"]
    assert result.operations[1].safety is Safety.MODERATE
    assert [report.method for report in result.report.operations if report.tool is None] == [
        "CONNECT",
        "bad method",
        "LOCK",
    ]
    assert compile_it(document({"/x": item})).report.operations == ()


@pytest.mark.parametrize(
    ("types", "accept"),
    [
        ([], "application/json, */*;q=0.5"),
        (["application/json"], "application/json, */*;q=0.5"),
        (["application/xml", "application/json"], "application/json, */*;q=0.5"),
        (["application/scim+json"], "application/scim+json, */*;q=0.5"),
        (["text/csv", "text/csv", "application/pdf"], "text/csv, application/pdf, */*;q=0.5"),
        (["*/*"], "application/json, */*;q=0.5"),
        (["bad\r\nX: y"], "application/json, */*;q=0.5"),
    ],
)
def test_json_is_requested_where_it_is_declared(types: list[str], accept: str) -> None:
    """RFC 9110: Accept, from the declared successes."""
    declared: dict[str, Any] = {name: {} for name in types}
    answers: dict[str, Any] = {"200": {"content": declared}, "400": {"content": {"text/html": {}}}}

    assert only(operation({"responses": answers})).plan.accept == accept


@pytest.mark.parametrize("method", ["COPY", "Copy", "link", "delete"])
def test_further_methods_keep_their_capitals(method: str) -> None:
    """OpenAPI 3.2: `additionalOperations` have the capitalisation that is to be sent (OAS-2)."""
    made = only(document({"/x": {"additionalOperations": {method: {"operationId": "op"}}}}, version="3.2.0"))

    assert made.plan.method == method
    assert made.safety is (Safety.DANGEROUS if method == "delete" else Safety.MODERATE)


@pytest.mark.parametrize("method", ["connect", "head", "Head", "a b", ""])
def test_methods_that_change_the_framing_are_not_sent(method: str) -> None:
    """Ours: a response to `head` may have a body or none, so it cannot be read safely."""
    written = document({"/x": {"additionalOperations": {method: {"operationId": "op"}}}}, version="3.2.0")

    assert fate(written).reasons == ("its method cannot be sent",)
