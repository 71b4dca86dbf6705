"""The definitions of the query tools: names, descriptions, input and output schemas. All tenants get the same ones."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from gateway.openapi.query.answers import DEFAULT_LIMIT, MOST_PER_PAGE
from gateway.openapi.query.references import MAX_DEPTH
from gateway.openapi.query.search import FIELDS
from gateway.openapi.query.truncation import LARGEST_ANSWER, LONGEST_POINTER

CALL: Final = "call_endpoint"

_LONGEST_TEXT = 2_000
_LONGEST_OPERATION = 65_536
"""Characters of an operation or path; longer than the request targets that servers usually accept."""
_MOST_OFFSET = 1_000_000
Schema = Mapping[str, Any]


def _text(description: str, longest: int = _LONGEST_TEXT) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": longest, "description": description}


def _object(properties: Mapping[str, Schema], *required: str, **more: object) -> Schema:
    return {"type": "object", "properties": properties, **({"required": required} if required else {}), **more}


_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_FLAG: Schema = {"type": "boolean"}
_NUMBER: Schema = {"type": "integer"}

_SOURCE = {"source": _text("Name of the API; needed only where several are exposed and the answer would be ambiguous.")}
_ENDPOINT = {
    "operation": _text(
        "Which endpoint: `operation` as lists show it, such as `GET /pets/{id}` or `TOOL name`; its operationId or tool"
        " name will do."
        " In its place: `path` and `method`.",
        _LONGEST_OPERATION,
    ),
    "path": _text("The path as listed, such as /pets/{id}; with `method`.", _LONGEST_OPERATION),
}
_METHOD = _text(
    "HTTP method: GET, POST, PUT, DELETE, PATCH, HEAD, OPTIONS, TRACE or another, in any case; TOOL for tools of MCP"
    " servers."
)
_PAGE: Mapping[str, Schema] = {
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": MOST_PER_PAGE,
        "default": DEFAULT_LIMIT,
        "description": f"Most items in one answer (default: {DEFAULT_LIMIT}).",
    },
    "offset": {
        "type": "integer",
        "minimum": 0,
        "maximum": _MOST_OFFSET,
        "default": 0,
        "description": "How many items to leave out at the beginning.",
    },
    "cursor": _text("`nextCursor` of the answer before, with otherwise the same arguments; in place of `offset`."),
}
_DEPTH: Mapping[str, Schema] = {
    "resolve": {
        "type": "boolean",
        "default": False,
        "description": "Replace every `$ref` by what it points at; circles stay. By default they are kept.",
    },
    "depth": {
        "type": "integer",
        "minimum": 0,
        "maximum": MAX_DEPTH,
        "description": "Replace `$ref`s only so many levels inside each other; wins over `resolve`.",
    },
    "pointer": _text(
        "Answer only with the part at this JSON Pointer, such as the one in a `$cut`: answers have at most"
        f" {LARGEST_ANSWER} bytes, and what does not fit is left out behind such pointers.",
        LONGEST_POINTER,
    ),
    "offset": {
        "type": "integer",
        "minimum": 0,
        "maximum": 2**31,
        "default": 0,
        "description": "With `pointer`: begin with this member, as given by `$cut`.",
    },
}
_PAGED: Mapping[str, Schema] = {"total": _NUMBER, "limit": _NUMBER, "offset": _NUMBER, "nextCursor": _TEXT}
_LISTED: Mapping[str, Schema] = {
    "source": _TEXT,
    "operation": _TEXT,
    "path": _TEXT,
    "method": _TEXT,
    "summary": _TEXT,
    "tags": _TEXTS,
    "operationId": _TEXT,
    "deprecated": _FLAG,
}
_ABOUT: Mapping[str, Schema] = {
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


def _tool(name: str, title: str, description: str, takes: Schema, answers: Schema | None = None) -> bytes:
    reads = name != CALL
    return orjson.dumps(
        {
            "name": name,
            "title": title,
            "description": description,
            "inputSchema": {**takes, "additionalProperties": False},
            **({} if answers is None else {"outputSchema": answers}),
            "annotations": {
                "readOnlyHint": reads,
                "destructiveHint": not reads,
                "idempotentHint": reads,
                "openWorldHint": not reads,
            },
        }
    )


DEFINITIONS: Mapping[str, bytes] = {
    "get_api_info": _tool(
        "get_api_info",
        "API overview",
        "What an API is: title, version, description, servers, tags, and how many endpoints and schemas it has. Without"
        " `source`, every API that is exposed here. Begin here.",
        _object(_SOURCE),
        _object({**_ABOUT, "sources": _list_of(_object(_ABOUT, "source", "title", "totalEndpoints", "totalSchemas"))}),
    ),
    "list_endpoints": _tool(
        "list_endpoints",
        "List endpoints",
        "The endpoints of an API, page by page, of one method or tag if wanted. `total` counts all that fit.",
        _object({**_SOURCE, "method": _METHOD, "tag": _text("Only endpoints with this tag."), **_PAGE}),
        _object(
            {"endpoints": _list_of(_object(_LISTED, "operation", "path", "method")), **_PAGED},
            *("endpoints", "total", "limit", "offset"),
        ),
    ),
    "search_endpoints": _tool(
        "search_endpoints",
        "Search endpoints",
        "Endpoints that fit some words, the best first: path, operationId, summary, description, tags and names of"
        " parameters are searched.",
        _object(
            {
                **_SOURCE,
                "query": _text("Words to look for, in any order."),
                "searchIn": {
                    "type": "string",
                    "enum": ["all", *FIELDS],
                    "default": "all",
                    "description": "Where to look.",
                },
                **_PAGE,
            },
            "query",
        ),
        _object(
            {
                "results": _list_of(
                    _object(
                        {
                            **_LISTED,
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
        "Everything about one endpoint: parameters, request body, responses, servers and security as they apply to it,"
        f" and as `inputSchema` the arguments that `{CALL}` takes for it.",
        _object(
            {
                **_SOURCE,
                **_ENDPOINT,
                "method": _METHOD,
                **_DEPTH,
            }
        ),
        _object(
            {
                **_LISTED,
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
        "The named schemas of an API, page by page. `total` counts all of them.",
        _object({**_SOURCE, **_PAGE}),
        _object(
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
        "One named schema, every schema it leads to (`dependencies`), and the schemas and endpoints that lead to it"
        " (`usedBy`).",
        _object({**_SOURCE, "name": _text("The name of the schema, or the `$ref` to it."), **_DEPTH}, "name"),
        _object(
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
        "Call one endpoint, with the arguments that `get_endpoint_details` shows as `inputSchema`. It is judged,"
        " limited and recorded like a tool of its own.",
        _object(
            {
                **_SOURCE,
                **_ENDPOINT,
                "method": _METHOD,
                "arguments": {"type": "object", "description": "Its arguments by name.", "default": {}},
            }
        ),
    ),
}
"""The listed definitions of the seven tools, by name."""

NAMES: Sequence[str] = tuple(DEFINITIONS)
