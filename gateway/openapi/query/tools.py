"""Definitions of the query tools: names, descriptions, input and output schemas; the same for all tenants."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from gateway.openapi.query.limits import (
    DEFAULT_LIMIT,
    FIELDS,
    MAX_ANSWER_BYTES,
    MAX_DEPTH,
    MAX_OFFSET,
    MAX_OPERATION_LENGTH,
    MAX_PER_PAGE,
    MAX_POINTER_LENGTH,
    MAX_QUERY_LENGTH,
    MAX_TEXT_LENGTH,
)

CALL: Final = "call_endpoint"
DETAILS: Final = "get_endpoint_details"
SEARCH: Final = "search_endpoints"

Schema = Mapping[str, Any]


def _text(description: str, max_length: int = MAX_TEXT_LENGTH) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": max_length, "description": description}


def _object(properties: Mapping[str, Schema], *required: str, **more: object) -> Schema:
    return {"type": "object", "properties": properties, **({"required": required} if required else {}), **more}


_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_FLAG: Schema = {"type": "boolean"}
_NUMBER: Schema = {"type": "integer"}

_SOURCE = {"source": _text("Name of the API; required only if several APIs are exposed and the request is ambiguous.")}
_ENDPOINT = {
    "operation": _text(
        "The endpoint: the `operation` from a list, such as `GET /pets/{id}` or `TOOL name`, or its operationId or "
        "tool name. Alternatively give `path` and `method`.",
        MAX_OPERATION_LENGTH,
    ),
    "path": _text("The path as listed, such as /pets/{id}; with `method`.", MAX_OPERATION_LENGTH),
}
_METHOD = _text(
    "HTTP method: GET, POST, PUT, DELETE, PATCH, HEAD, OPTIONS, TRACE or another, in any case; TOOL for tools of MCP"
    " servers."
)
_PAGE: Mapping[str, Schema] = {
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_PER_PAGE,
        "default": DEFAULT_LIMIT,
        "description": f"Maximum number of items in the result (default: {DEFAULT_LIMIT}).",
    },
    "offset": {
        "type": "integer",
        "minimum": 0,
        "maximum": MAX_OFFSET,
        "default": 0,
        "description": "Number of items to skip.",
    },
    "cursor": _text("`nextCursor` of the previous result, with otherwise the same arguments; replaces `offset`."),
}
_DEPTH: Mapping[str, Schema] = {
    "resolve": {
        "type": "boolean",
        "default": False,
        "description": "Replace every `$ref` by its target, except circular ones (default: false).",
    },
    "depth": {
        "type": "integer",
        "minimum": 0,
        "maximum": MAX_DEPTH,
        "description": "Number of nested levels of `$ref` to replace; overrides `resolve`.",
    },
    "pointer": _text(
        "Return only the part at this JSON Pointer, such as the one in a `$cut`: results have at most"
        f" {MAX_ANSWER_BYTES} bytes, and a `$cut` with a pointer replaces each omitted part.",
        MAX_POINTER_LENGTH,
    ),
    "offset": {
        "type": "integer",
        "minimum": 0,
        "maximum": 2**31,
        "default": 0,
        "description": "With `pointer`: the first member to return, from `$cut`.",
    },
}
_PAGED: Mapping[str, Schema] = {"total": _NUMBER, "limit": _NUMBER, "offset": _NUMBER, "nextCursor": _TEXT}
_ENDPOINT_SUMMARY: Mapping[str, Schema] = {
    "source": _TEXT,
    "operation": _TEXT,
    "path": _TEXT,
    "method": _TEXT,
    "summary": _TEXT,
    "tags": _TEXTS,
    "operationId": _TEXT,
    "deprecated": _FLAG,
}
_API_INFO: Mapping[str, Schema] = {
    "source": _TEXT,
    "title": _TEXT,
    "version": _TEXT,
    "openapi": _TEXT,
    "description": _TEXT,
    "summary": _TEXT,
    "servers": _TEXTS,
    "tags": _TEXTS,
    "totalEndpoints": _NUMBER,
    "totalSchemas": _NUMBER,
}


def _list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _tool(name: str, title: str, description: str, arguments: Schema, *, result: Schema | None = None) -> bytes:
    is_read_only = name != CALL
    return orjson.dumps(
        {
            "name": name,
            "title": title,
            "description": description,
            "inputSchema": {**arguments, "additionalProperties": False},
            **({} if result is None else {"outputSchema": result}),
            "annotations": {
                "readOnlyHint": is_read_only,
                "destructiveHint": not is_read_only,
                "idempotentHint": is_read_only,
                "openWorldHint": not is_read_only,
            },
        }
    )


DEFINITIONS: Mapping[str, bytes] = {
    "get_api_info": _tool(
        "get_api_info",
        "API overview",
        "Describes an API: title, version, description, servers, tags, and the number of endpoints and schemas. "
        "Without `source`, describes every exposed API. Start here.",
        _object(_SOURCE),
        result=_object(
            {**_API_INFO, "sources": _list_of(_object(_API_INFO, "source", "title", "totalEndpoints", "totalSchemas"))}
        ),
    ),
    "list_endpoints": _tool(
        "list_endpoints",
        "List endpoints",
        "Lists the endpoints of an API in pages, optionally of one method or tag. `total` is the number of all "
        "matches.",
        _object({**_SOURCE, "method": _METHOD, "tag": _text("Only endpoints with this tag."), **_PAGE}),
        result=_object(
            {"endpoints": _list_of(_object(_ENDPOINT_SUMMARY, "operation", "path", "method")), **_PAGED},
            *("endpoints", "total", "limit", "offset"),
        ),
    ),
    "search_endpoints": _tool(
        "search_endpoints",
        "Search endpoints",
        "Finds endpoints by words, best match first. Searches path, operationId, summary, description, tags, and "
        "names and descriptions of parameters.",
        _object(
            {
                **_SOURCE,
                "query": _text("The question, or words to find in any order.", MAX_QUERY_LENGTH),
                "searchIn": {
                    "type": "string",
                    "enum": ["all", *FIELDS],
                    "default": "all",
                    "description": "The field to search.",
                },
                **_PAGE,
            },
            "query",
        ),
        result=_object(
            {
                "results": _list_of(
                    _object(
                        {
                            **_ENDPOINT_SUMMARY,
                            "tool": _TEXT,
                            "description": _TEXT,
                            "relevance": {"type": "number"},
                            "matchedFields": _TEXTS,
                        },
                        *("operation", "path", "method", "relevance", "matchedFields"),
                    )
                ),
                **_PAGED,
            },
            *("results", "total", "limit", "offset"),
        ),
    ),
    "get_endpoint_details": _tool(
        "get_endpoint_details",
        "Endpoint details",
        "Describes one endpoint: parameters, request body, responses, servers and security, and in `inputSchema` the "
        f"arguments for `{CALL}`.",
        _object(
            {
                **_SOURCE,
                **_ENDPOINT,
                "method": _METHOD,
                **_DEPTH,
            }
        ),
        result=_object(
            {
                **_ENDPOINT_SUMMARY,
                "description": _TEXT,
                "tool": _TEXT,
                "pointer": _TEXT,
                "tags": {"type": "array"},
                "parameters": {},
                "requestBody": {},
                "responses": {},
                "servers": {},
                "security": {},
                "inputSchema": {},
                "value": {},
                "offset": _NUMBER,
            },
            *("source", "operation", "path", "method"),
        ),
    ),
    "list_schemas": _tool(
        "list_schemas",
        "List schemas",
        "Lists the named schemas of an API in pages. `total` is the number of all schemas.",
        _object({**_SOURCE, **_PAGE}),
        result=_object(
            {
                "schemas": _list_of(
                    _object(
                        {
                            "source": _TEXT,
                            "name": _TEXT,
                            "type": {"anyOf": [_TEXT, _TEXTS]},
                            "description": _TEXT,
                            "deprecated": _FLAG,
                        },
                        "name",
                    )
                ),
                **_PAGED,
            },
            *("schemas", "total", "limit", "offset"),
        ),
    ),
    "get_schema_details": _tool(
        "get_schema_details",
        "Schema details",
        "Describes one named schema, all schemas that it references (`dependencies`), and the schemas and endpoints "
        "that reference it (`usedBy`).",
        _object({**_SOURCE, "name": _text("The name of the schema, or the `$ref` to it."), **_DEPTH}, "name"),
        result=_object(
            {
                "source": _TEXT,
                "name": _TEXT,
                "schema": {},
                "dependencies": {"type": "array"},
                "usedBy": {"type": "array"},
                "pointer": _TEXT,
                "value": {},
                "offset": _NUMBER,
            },
            *("source", "name"),
        ),
    ),
    CALL: _tool(
        CALL,
        "Call endpoint",
        "Calls one endpoint with the arguments described by the `inputSchema` of `get_endpoint_details`. Policy, "
        "limits and the audit trail treat the call like a call of a separate tool.",
        _object(
            {
                **_SOURCE,
                **_ENDPOINT,
                "method": _METHOD,
                "arguments": {
                    "type": "object",
                    "description": "The arguments of the endpoint, by name.",
                    "default": {},
                },
            }
        ),
    ),
}
"""The listed definitions of the seven tools, by name."""

NAMES: Sequence[str] = tuple(DEFINITIONS)
