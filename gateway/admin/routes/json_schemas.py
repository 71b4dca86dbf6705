"""Endpoints of the JSON Schemas of definitions and handlers."""

from gateway.admin.endpoint import ADMIN, AdminDependencies, AdminResponse, Endpoint, Plain
from gateway.admin.requests.models import NoBody, NoQuery
from gateway.admin.responses.selections import SchemaDocument, SchemaNames
from gateway.definitions.published.index import NAMES, schema_of
from gateway.errors import NotFound


async def list_schemas(_: AdminDependencies, __: Plain) -> AdminResponse:
    """List the names of all schemas."""
    return AdminResponse(content=SchemaNames(items=NAMES))


async def get_schema(_: AdminDependencies, call: Plain) -> AdminResponse:
    """Show a schema."""
    schema = schema_of(call.path["name"])
    if schema is None:
        raise NotFound("no such schema")
    return AdminResponse(content=SchemaDocument(schema))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/schemas",
        summary="List the JSON Schemas of definitions and of the kinds of handlers.",
        handle=list_schemas,
        body=NoBody,
        query=NoQuery,
        answers={200: SchemaNames},
        scopes=ADMIN,
    ),
    Endpoint(
        method="GET",
        path="/schemas/{name}",
        summary="Show a JSON Schema (2020-12).",
        handle=get_schema,
        body=NoBody,
        query=NoQuery,
        answers={200: SchemaDocument},
        scopes=ADMIN,
        problems=frozenset({404}),
    ),
)
