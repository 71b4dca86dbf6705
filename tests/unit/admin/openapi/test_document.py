"""The OpenAPI document of the admin API, against the table of routes and against itself."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
import orjson
import pytest

from gateway.admin.endpoint import Route
from gateway.admin.openapi.document import DOCUMENT, describe, statuses_of
from gateway.admin.requests.documents import DocumentSent
from gateway.admin.routes.index import ENDPOINTS, ROOT
from gateway.domain.members.formats import WORDS
from gateway.openapi.compiler import compile_document
from gateway.openapi.options import ImportOptions
from gateway.web.models import NoBody

UNPARSED = {NoBody, DocumentSent}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The document as it is served."""
    loaded: dict[str, Any] = orjson.loads(orjson.dumps(describe(ENDPOINTS, server=ROOT)))
    return loaded


def test_the_document_has_exactly_the_routes_there_are(document: dict[str, Any]) -> None:
    """Ours: every documented route exists, and every route is documented."""
    documented = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert documented == {(route.method, route.path) for route in ENDPOINTS} | {("GET", DOCUMENT)}


def test_no_route_is_declared_twice() -> None:
    """Ours: one method of one path is one endpoint."""
    declared = [(route.method, route.path) for route in ENDPOINTS]
    assert len(declared) == len(set(declared))


def test_every_schema_is_valid_and_complete(document: dict[str, Any]) -> None:
    """OpenAPI 3.1: schemas are JSON Schema 2020-12 and every reference leads somewhere."""
    components = document["components"]
    for name in components["schemas"]:
        schema = {"$ref": f"#/components/schemas/{name}", "components": components}
        jsonschema_rs.Draft202012Validator(schema, offline=True)
    referred = set(re.findall(r"#/components/schemas/(\w+)", orjson.dumps(document).decode()))
    assert referred == set(components["schemas"])


def test_every_word_of_the_document_is_explained(document: dict[str, Any]) -> None:
    """Ours: each field, parameter, object, operation and tag has a description (ADM-1)."""
    for name, schema in document["components"]["schemas"].items():
        fields = schema.get("properties", {}).items()
        unexplained = [f"{name}.{field}" for field, described in fields if not described.get("description")]
        assert not unexplained
        assert schema.get("description"), name
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    assert all(operation["summary"] for operation in operations)
    assert all(parameter["description"] for operation in operations for parameter in operation.get("parameters", ()))
    assert {tag["name"] for tag in document["tags"]} == {tag for operation in operations for tag in operation["tags"]}


@pytest.mark.parametrize(
    "route", [pytest.param(route, id=route.name) for route in ENDPOINTS if route.body not in UNPARSED]
)
def test_the_example_of_a_body_is_one(route: Route, document: dict[str, Any]) -> None:
    """Ours: each example body of the document can be sent (ADM-1)."""
    shown = document["paths"][route.path][route.method.lower()]["requestBody"]["content"]["application/json"]
    route.body.model_validate(shown["example"])
    schema = {**shown["schema"], "components": document["components"]}
    assert jsonschema_rs.Draft202012Validator(schema, offline=True).is_valid(shown["example"])


def test_every_pattern_has_words(document: dict[str, Any]) -> None:
    """Ours: a refusal describes the form of a text, not its pattern (ADM-1)."""
    schemas = [
        document["components"]["schemas"][route.body.__name__] for route in ENDPOINTS if route.body not in UNPARSED
    ]
    found = set(_patterns(schemas))
    assert found
    assert found <= set(WORDS)


def _patterns(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        for name, value in cast("dict[str, object]", schema).items():
            if name == "pattern" and isinstance(value, str):
                yield value
            yield from _patterns(value)
    elif isinstance(schema, list):
        for item in cast("list[object]", schema):
            yield from _patterns(item)


def test_every_object_that_is_read_is_closed(document: dict[str, Any]) -> None:
    """Ours: unknown fields are refused, and the document declares it."""
    for name, schema in document["components"]["schemas"].items():
        if schema.get("type") == "object" and name not in {"Problem", "FaultShown", "ConflictShown", "SchemaDocument"}:
            assert schema["additionalProperties"] is False, name


def test_operation_ids_are_unique(document: dict[str, Any]) -> None:
    """OpenAPI: an operationId names one operation."""
    named = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(named) == len(set(named))


def test_refusals_follow_from_the_shape_of_a_route() -> None:
    """Ours: a route with a body can refuse its type and size, one with a tenant can be missing."""
    by_name = {(route.method, route.path): statuses_of(route) for route in ENDPOINTS}
    assert by_name["GET", "/tenants"] == {400, 401, 403, 429, 500, 503}
    assert by_name["POST", "/tenants/{t}/sources"] >= {404, 409, 413, 415, 422, 429, 502, 504}
    assert 412 in by_name["DELETE", "/tenants/{t}/keys/{id}"]


def test_our_own_importer_takes_the_document_whole(document: dict[str, Any]) -> None:
    """Ours: the admin API can itself be a source; no operation of it is skipped (OAS-1)."""
    compiled = compile_document(orjson.dumps(document), ImportOptions(base_url="https://gateway.example/admin/v1"))
    assert {operation.status.value for operation in compiled.report.operations} <= {"ok", "degraded"}
    assert len(compiled.operations) == len(ENDPOINTS) + 1


def test_nothing_of_this_machine_is_in_the_document(document: dict[str, Any]) -> None:
    """Ours: the document is the same wherever it is served."""
    assert str(Path.home()) not in orjson.dumps(document).decode()
