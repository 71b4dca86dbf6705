"""Endpoints of the JSON Schemas of definitions, handlers and manifests."""

from gateway.admin.crud import endpoint
from gateway.admin.endpoint import AdminDependencies, AdminResponse, Plain
from gateway.admin.responses.json_schemas import SchemaDocument, SchemaNames
from gateway.definitions.published.index import NAMES, schema_of
from gateway.errors import NotFound
from gateway.web.kinds.manifests import manifest_schema
from gateway.web.models import NoBody, NoQuery

_MANIFEST = "manifest"


async def list_schemas(_: AdminDependencies, __: Plain) -> AdminResponse:
    """List the JSON Schemas of definitions, of the kinds of handlers, and of manifests."""
    return AdminResponse(content=SchemaNames(items=[*NAMES, _MANIFEST]))


async def get_schema(_: AdminDependencies, call: Plain) -> AdminResponse:
    """Show a JSON Schema (2020-12)."""
    name = call.path["name"]
    schema = manifest_schema() if name == _MANIFEST else schema_of(name)
    if schema is None:
        raise NotFound("no such schema")
    return AdminResponse(content=SchemaDocument(schema))


ENDPOINTS = (
    endpoint("GET", "/schemas", list_schemas, NoBody, query=NoQuery, responses={200: SchemaNames}),
    endpoint(
        "GET", "/schemas/{name}", get_schema, NoBody, query=NoQuery, responses={200: SchemaDocument}, problems={404}
    ),
)
