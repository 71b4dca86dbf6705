"""Published JSON Schemas of definitions and of primitives' results, as far as JSON Schema can express the rules."""

from collections.abc import Mapping

from gateway.definitions.contract.limits import (
    MAX_BLOCKS,
    MAX_DESCRIPTION_LENGTH,
    MAX_LINK_SIZE,
    MAX_PROMPT_ARGUMENTS,
    MAX_TITLE_LENGTH,
)
from gateway.definitions.contract.metadata import ROLES, THEMES
from gateway.definitions.contract.tools import HINTS, NAME
from gateway.definitions.uri.grammar import FORM
from gateway.domain.calls.mcp_tasks import TaskSupport
from gateway.domain.members.limits import MAX_URL_LENGTH

Schema = dict[str, object]


def text(max_length: int, **more: object) -> Schema:
    """Schema of a string that is not blank."""
    return {"type": "string", "minLength": 1, "maxLength": max_length, "pattern": r"\S", **more}


def closed(required: tuple[str, ...] = (), /, **properties: object) -> Schema:
    """Schema of an object with these properties and no others; a trailing `_` in a Python name is removed."""
    named = {name.rstrip("_") if name != "_meta" else name: schema for name, schema in properties.items()}
    found: Schema = {"type": "object", "properties": named, "additionalProperties": False}
    return {**found, "required": list(required)} if required else found


def ref(name: str) -> Schema:
    """Reference to one of the shared definitions."""
    return {"$ref": f"#/$defs/{name}"}


_MIME: Schema = {"type": "string", "minLength": 3, "maxLength": 300, "pattern": "^[A-Za-z0-9!#$&^_.+-]+/"}
_URI: Schema = {"type": "string", "maxLength": MAX_URL_LENGTH, "pattern": FORM}
_BASE64: Schema = {"type": "string", "contentEncoding": "base64", "pattern": "^[A-Za-z0-9+/]*={0,2}$"}
_NAME: Schema = {"type": "string", "pattern": f"^{NAME.pattern}$"}
_SIZE: Schema = {"type": "integer", "minimum": 0, "maximum": MAX_LINK_SIZE}
_DISPLAY_MEMBERS: Mapping[str, object] = {
    "title": text(MAX_TITLE_LENGTH),
    "description": text(MAX_DESCRIPTION_LENGTH),
    "icons": ref("icons"),
    "_meta": ref("meta"),
}
_HINTED = closed(title=text(MAX_TITLE_LENGTH), **{hint: {"type": "boolean"} for hint in HINTS})

SHARED: Mapping[str, Schema] = {
    "icons": {
        "type": "array",
        "maxItems": 16,
        "items": closed(
            ("src",),
            src={"type": "string", "pattern": "^(https://[^@/]+|data:image/(png|jpeg|gif|webp);base64,)"},
            mimeType=_MIME,
            sizes={"type": "array", "maxItems": 16, "items": {"pattern": "^(any|[1-9][0-9]*x[1-9][0-9]*)$"}},
            theme={"enum": list(THEMES)},
        ),
    },
    "meta": {
        "type": "object",
        "propertyNames": {"pattern": "^([A-Za-z][A-Za-z0-9.-]*/)?([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$"},
    },
    "annotations": closed(
        audience={"type": "array", "maxItems": len(ROLES), "items": {"enum": list(ROLES)}},
        priority={"type": "number", "minimum": 0, "maximum": 1},
        lastModified={"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}"},
    ),
    "contents": {
        **closed(uri=_URI, mimeType=_MIME, text={"type": "string"}, blob=_BASE64, _meta=ref("meta")),
        "oneOf": [{"required": ["text"]}, {"required": ["blob"]}],
    },
    "embedded": {
        **closed(("uri",), uri=_URI, mimeType=_MIME, text={"type": "string"}, blob=_BASE64, _meta=ref("meta")),
        "not": {"required": ["text", "blob"]},
    },
    "block": {
        "oneOf": [
            closed(
                ("type", "text"),
                type={"const": "text"},
                text={"type": "string"},
                annotations=ref("annotations"),
                _meta=ref("meta"),
            ),
            *(
                closed(
                    ("type", "data", "mimeType"),
                    type={"const": kind},
                    data=_BASE64,
                    mimeType={**_MIME, "pattern": f"^{kind}/"},
                    annotations=ref("annotations"),
                    _meta=ref("meta"),
                )
                for kind in ("image", "audio")
            ),
            closed(
                ("type", "uri", "name"),
                type={"const": "resource_link"},
                uri=_URI,
                name=text(MAX_TITLE_LENGTH),
                mimeType=_MIME,
                size=_SIZE,
                annotations=ref("annotations"),
                **_DISPLAY_MEMBERS,
            ),
            closed(
                ("type", "resource"),
                type={"const": "resource"},
                resource=ref("embedded"),
                annotations=ref("annotations"),
                _meta=ref("meta"),
            ),
        ]
    },
    "message": closed(("role", "content"), role={"enum": list(ROLES)}, content=ref("block")),
    "content": {"type": "array", "maxItems": MAX_BLOCKS, "items": ref("block")},
    "messages": {"type": "array", "maxItems": MAX_BLOCKS, "items": ref("message")},
}
"""Shared definitions that the schemas refer to under `$defs`."""

TOOL = closed(
    ("name", "description", "inputSchema"),
    name=_NAME,
    inputSchema={
        "type": "object",
        "required": ["type", "properties"],
        "properties": {"type": {"const": "object"}, "properties": {"type": "object"}},
    },
    outputSchema={"type": "object"},
    annotations=_HINTED,
    execution=closed(taskSupport={"enum": [support.value for support in TaskSupport]}),
    **_DISPLAY_MEMBERS,
)
RESOURCE = closed(
    ("uri", "name"),
    uri=_URI,
    name=text(MAX_TITLE_LENGTH),
    mimeType=_MIME,
    size=_SIZE,
    annotations=ref("annotations"),
    **_DISPLAY_MEMBERS,
)
RESOURCE_TEMPLATE = closed(
    ("uriTemplate", "name"),
    uriTemplate={"type": "string", "maxLength": MAX_URL_LENGTH, "pattern": r"^[A-Za-z][A-Za-z0-9+.-]*:.*\{[^{}]+\}"},
    name=text(MAX_TITLE_LENGTH),
    mimeType=_MIME,
    annotations=ref("annotations"),
    **_DISPLAY_MEMBERS,
)
PROMPT = closed(
    ("name",),
    name=_NAME,
    arguments={
        "type": "array",
        "maxItems": MAX_PROMPT_ARGUMENTS,
        "items": closed(
            ("name",),
            name=text(64),
            title=text(MAX_TITLE_LENGTH),
            description=text(MAX_DESCRIPTION_LENGTH),
            required={"type": "boolean"},
        ),
    },
    **_DISPLAY_MEMBERS,
)
