"""Definitions of the tool and of the resource template with which clients read parts of stored results."""

from typing import Final

import orjson

from gateway.definitions.large_results.limits import (
    MAX_CONDITION_POINTER_LENGTH,
    MAX_CONDITIONS,
    MAX_LIMIT,
    MAX_OFFSET,
    MAX_RESULT_POINTER_LENGTH,
    MAX_SOUGHT_LENGTH,
)
from gateway.domain.results import RESULT_SCHEME

READ_RESULT: Final = "read_result"
"""The name of the tool; no new tool of an operation gets it."""

PARAMETERS: Final = ("pointer", "offset", "limit", "where", "equals", "contains")
TEMPLATE: Final = f"{RESULT_SCHEME}://{{result}}{{?{','.join(PARAMETERS)}}}"

_WHAT: Final = (
    "Reads a part of a large result that was summarised: the value at a JSON Pointer. Arrays, objects and texts come "
    "in pages; continue with `offset` set to `next_offset`. `where` selects elements of an array, or lines of a text."
)
_POINTER: Final = {"type": "string", "maxLength": MAX_RESULT_POINTER_LENGTH}


def _condition() -> dict[str, object]:
    return {
        "type": "object",
        "properties": {
            "pointer": {
                "type": "string",
                "maxLength": MAX_CONDITION_POINTER_LENGTH,
                "default": "",
                "description": "JSON Pointer in the element, such as /status.",
            },
            "equals": {"type": ["string", "number", "boolean", "null"], "description": "The value there."},
            "contains": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_SOUGHT_LENGTH,
                "description": "A part of the text there, in any letter case.",
            },
        },
        "anyOf": [{"required": ["equals"]}, {"required": ["contains"]}],
        "additionalProperties": False,
    }


READ_DEFINITION: Final = orjson.dumps(
    {
        "name": READ_RESULT,
        "title": "Read a part of a result",
        "description": _WHAT,
        "inputSchema": {
            "type": "object",
            "properties": {
                "result": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 128,
                    "description": f"The URI of the result, {RESULT_SCHEME}://…, from its summary.",
                },
                "pointer": {
                    **_POINTER,
                    "default": "",
                    "description": "JSON Pointer of the part, such as /items/7; empty: the whole result. "
                    "The lines of a text are the elements of an array.",
                },
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": MAX_OFFSET,
                    "default": 0,
                    "description": "Position of the first element, member, line, or character of a long text.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_LIMIT,
                    "description": "Number of elements, members, lines or characters; by default, all that fit.",
                },
                "where": {
                    "type": "array",
                    "items": _condition(),
                    "maxItems": MAX_CONDITIONS,
                    "description": "Conditions that all have to be true of an element.",
                },
            },
            "required": ["result"],
            "additionalProperties": False,
        },
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }
)

TEMPLATE_DEFINITION: Final = orjson.dumps(
    {
        "uriTemplate": TEMPLATE,
        "name": "parts of a large result",
        "description": "A part of a large result that was summarised, as JSON. `where` is the JSON Pointer that "
        "`equals` or `contains` tests in each element.",
        "mimeType": "application/json",
    }
)
