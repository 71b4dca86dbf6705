"""The OpenAPI 3.1 document of the admin API, generated from the routes and their models."""

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import cast

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from gateway.admin.endpoint import Route, is_upsert
from gateway.admin.idempotency import takes_key
from gateway.admin.openapi.examples import example_of
from gateway.admin.requests.documents import DocumentSent
from gateway.admin.responses.models import Problem
from gateway.admin.responses.sources import ImportTried, ProposalMade, SourceChanged
from gateway.kinds.index import KINDS, OPERATORS_KINDS
from gateway.kinds.singletons import SINGLETONS
from gateway.web.models import NoBody

Json = dict[str, object]

_PATH_PARAMETER = re.compile(r"\{(\w+)\}")
_VERSION = "1.0.0"
DOCUMENT = "/openapi.json"
"""The path of the document itself."""

_REFERENCE = "#/components/schemas/{model}"
_API_DESCRIPTION = """Tenants, keys, sources, tools, policy and audit.

Every refusal is a problem document (RFC 9457). A method that the path does not have is refused with 405; oversized or
slow requests are refused with 408, 414 or 431 before the path is read. Objects of other tenants are reported as not
found. Unknown fields and parameters are refused. Lists are paged: send `next_cursor` of one page as `cursor` of the
next, with the same search, filters and order. `search` finds a string in names and descriptions, in any letter case;
`%`, `_` and `*` are literal. `sort` takes one field; a `-` in front reverses the order. `If-Match` is optional. A PUT
by name replaces the object (200) or creates it (201); with `If-None-Match: *` it only creates, with `If-Match` it only
replaces. `Idempotency-Key` makes a POST inside a tenant repeatable for 24 hours: the request is executed once, and its
stored response is returned again."""
_DOCUMENT_OPERATION: Json = {
    "operationId": "get_openapi",
    "summary": "This document; no credential is needed.",
    "tags": ["openapi"],
    "security": [],
    "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {"type": "object"}}}}},
}
_TAG: Json = {"description": "The version of the object, for `If-Match`.", "schema": {"type": "string"}}
_LOCATION: Json = {"description": "The path of the created object.", "required": True, "schema": {"type": "string"}}
_RETRY_AFTER: Json = {
    "description": "Seconds after which to retry.",
    "required": True,
    "schema": {"type": "integer", "minimum": 1},
}
_RETRYABLE_STATUSES = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_IF_MATCH: Json = {
    "name": "If-Match",
    "in": "header",
    "description": "Change the object only if it still has this version.",
    "schema": {"type": "string"},
}
_IF_NONE_MATCH: Json = {
    "name": "If-None-Match",
    "in": "header",
    "description": "Create the object; refuse the request if it exists.",
    "schema": {"type": "string", "const": "*"},
}
_IDEMPOTENCY_KEY: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Executes the request once: for 24 hours, the same request with the same credential and key "
    "returns the stored response, with `Idempotency-Replayed: true`. A different request with the key is refused "
    "(422).",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}
_TAGS: Mapping[str, str] = {
    **{kind.plural: f"Each is {kind.about}." for kind in (*KINDS, *OPERATORS_KINDS)},
    **{one.path: f"{one.about[:1].upper()}{one.about[1:]}." for one in SINGLETONS},
    "apply": "Configuration as code: many objects in one transaction.",
    "approvals": "Decisions of a person about calls of another person.",
    "audit": "Records of changes and calls, and the verification of the trail.",
    "consents": "Permissions of people for clients to receive tokens.",
    "accounts": "Accounts that users have connected at upstreams.",
    "documents": "Documents that manifests of sources name by their digest.",
    "doctor": "Checks of the installation.",
    "secrets": "The secret keys of the installation, and the re-encryption under the current one.",
    "keys": "Credentials of a tenant's clients and people.",
    "openapi": "This document.",
    "schemas": "The JSON Schemas of definitions, handlers, live sources and manifests.",
    "sources": "OpenAPI documents and the tools made from them.",
    "deleted-tenants": "Tenants that were deleted, whose audit trails remain.",
    "grants": "Authorizations of clients by people, with the tokens that were issued under them.",
    "issuers": "Authorization servers whose access tokens the tenant accepts in place of keys.",
    "people": "People who signed in with an access token.",
}
_PARAMETERS: Mapping[str, str] = {
    "t": "The tenant's slug or id.",
    "name": "The name or id of the object.",
    "id": "The id of the object.",
    "digest": "The SHA-256 of the document, in hexadecimal.",
}


def describe(routes: Sequence[Route], *, server: str) -> Json:
    """Generate the document of these routes; `server` is the path prefix under which they are served."""
    schemas = _collect_schemas(routes)
    paths: dict[str, Json] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _describe_operation(route, schemas)
    paths[DOCUMENT] = {"get": _DOCUMENT_OPERATION}
    queries = {route.query.__name__ for route in routes}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Gateway admin API", "version": _VERSION, "description": _API_DESCRIPTION},
        "servers": [{"url": server}],
        "security": [{"key": []}],
        "tags": [{"name": name, "description": _TAGS[name]} for name in sorted(_tags_of(paths))],
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in schemas.items() if name not in queries},
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The operator key, a tenant's API key, or an access token.",
                }
            },
        },
    }


def _tags_of(paths: Mapping[str, Json]) -> set[str]:
    operations = (cast("Json", operation) for item in paths.values() for operation in item.values())
    return {tag for operation in operations for tag in cast("list[str]", operation["tags"])}


def statuses_of(route: Route) -> frozenset[int]:
    """Return the statuses of refusals that the document lists for a route."""
    has_body = route.body is not NoBody
    return frozenset(route.problems).union(
        {400, 401, 403, 429, 500, 503},
        {404} if "{" in route.path else (),
        {413} if has_body or route.method == "POST" else (),
        {415} if has_body else (),
        {412} if _is_conditional(route) else (),
        {409, 422} if takes_key(route.method, route.path) else (),
    )


def _collect_schemas(routes: Sequence[Route]) -> dict[str, Json]:
    sent: set[type[BaseModel]] = {model for route in routes for model in (route.body, route.query)}
    shown = {model for route in routes for model in route.responses.values() if model is not None} | {Problem}
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "validation") for model in _by_name(sent - {NoBody, DocumentSent})),
        *((model, "serialization") for model in _by_name(shown)),
    ]
    _, collected = models_json_schema(models, ref_template=_REFERENCE)
    return cast("dict[str, Json]", _simplify(collected["$defs"]))


def _describe_operation(route: Route, schemas: Mapping[str, Json]) -> Json:
    described: Json = {"operationId": route.name, "summary": route.summary, "tags": [_tag(route)]}
    if parameters := [*_path_parameters(route), *_query_parameters(route, schemas), *_header_parameters(route)]:
        described["parameters"] = parameters
    if route.body is not NoBody:
        described["requestBody"] = {
            "required": not route.body.is_optional,
            "content": _describe_body(route),
        }
    responses = {str(status): _describe_response(route, status) for status in sorted(route.responses)}
    refusals = {str(status): _describe_refusal(status) for status in sorted(statuses_of(route))}
    return {**described, "responses": responses | refusals}


def _describe_body(route: Route) -> Json:
    example = example_of(route.body.__name__)
    if not route.path.startswith("/tenants"):  # issuers of the installation have no sign-in
        example = {name: value for name, value in example.items() if name != "sign_in"}
    schema = {"type": "object"} if route.body is DocumentSent else _reference(route.body)
    others: Json = {media_type: {"schema": {}} for media_type in route.body.media_types[1:]}
    return {"application/json": {"schema": schema, "example": example}, **others}


def _describe_response(route: Route, status: int) -> Json:
    described: Json = {"description": HTTPStatus(status).phrase}
    model = route.responses[status]
    if model is not None:
        described["content"] = {route.media_type: {"schema": _reference(model)}}
        headers: Json = {}
        if route.has_tag and model is not ImportTried:
            headers["ETag"] = {**_TAG, "required": model not in {SourceChanged, ProposalMade}}
        if status == HTTPStatus.CREATED:
            headers["Location"] = _LOCATION
        if headers:
            described["headers"] = headers
    return described


def _describe_refusal(status: int) -> Json:
    content = {"application/problem+json": {"schema": _reference(Problem)}}
    described: Json = {"description": HTTPStatus(status).phrase, "content": content}
    return described | ({"headers": {"Retry-After": _RETRY_AFTER}} if status in _RETRYABLE_STATUSES else {})


def _path_parameters(route: Route) -> Iterable[Json]:
    for name in _PATH_PARAMETER.findall(route.path):
        schema = {"type": "string"}
        yield {"name": name, "in": "path", "required": True, "description": _PARAMETERS[name], "schema": schema}


def _query_parameters(route: Route, schemas: Mapping[str, Json]) -> Iterable[Json]:
    properties = cast("Mapping[str, Json]", schemas[route.query.__name__].get("properties", {}))
    for name, schema in properties.items():
        plain = {key: value for key, value in schema.items() if key not in {"description", "examples"}}
        described: Json = {"name": name, "in": "query", "description": schema["description"], "schema": plain}
        [example] = cast("list[object]", schema.get("examples", [None]))
        yield described if example is None else {**described, "example": example}


def _header_parameters(route: Route) -> Iterable[Json]:
    if _is_conditional(route):
        yield _IF_MATCH
    if is_upsert(route):
        yield _IF_NONE_MATCH
    if takes_key(route.method, route.path):
        yield _IDEMPOTENCY_KEY


def _is_conditional(route: Route) -> bool:
    return route.has_tag and (is_upsert(route) or (route.method != "GET" and HTTPStatus.CREATED not in route.responses))


def _tag(route: Route) -> str:
    _, first, *others = route.path.split("/")
    return others[1] if first == "tenants" and len(others) > 1 else first


def _reference(model: type[BaseModel]) -> Json:
    return {"$ref": _REFERENCE.format(model=model.__name__)}


def _by_name(models: Iterable[type[BaseModel]]) -> list[type[BaseModel]]:
    return sorted(models, key=lambda model: model.__name__)


def _simplify(schema: object) -> object:
    """Remove generated titles, and null defaults, which only mark absent fields."""
    if isinstance(schema, list):
        return [_simplify(item) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _simplify(value)
        for name, value in cast("dict[str, object]", schema).items()
        if not (name == "title" and isinstance(value, str)) and not (name == "default" and value is None)
    }
