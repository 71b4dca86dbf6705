"""Validation of results against the protocol: content blocks, resource contents and prompt messages."""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import cast

from gateway.definitions.contract.limits import MAX_BLOCKS, MAX_LINK_SIZE, MAX_TITLE_LENGTH
from gateway.definitions.contract.metadata import (
    ROLES,
    is_mime_type,
    read_annotations,
    read_description,
    read_icons,
    read_meta,
    read_mime_type,
    read_title,
)
from gateway.definitions.field_reader import Faults, FieldReader, copy_untrusted
from gateway.definitions.uri.grammar import is_uri
from gateway.domain.json_access import as_list, as_object, point
from gateway.errors import DefinitionInvalid, PromptValidationError, ResourceValidationError, ToolValidationError

UNTYPED = "is missing; set it here, or as mimeType of the definition"
BLOCK_FIELDS: Mapping[str, tuple[str, ...]] = {
    "text": ("type", "text", "annotations", "_meta"),
    "image": ("type", "data", "mimeType", "annotations", "_meta"),
    "audio": ("type", "data", "mimeType", "annotations", "_meta"),
    "resource_link": (
        "type",
        "uri",
        "name",
        "title",
        "description",
        "mimeType",
        "size",
        "icons",
        "annotations",
        "_meta",
    ),
    "resource": ("type", "resource", "annotations", "_meta"),
}
CONTENTS_FIELDS = ("uri", "mimeType", "text", "blob", "_meta")


def validate_content(raw: object) -> tuple[dict[str, object], ...]:
    """Return the content blocks of a tool's result, validated.

    Raises:
        ToolValidationError: the value is not a list of at most 1,000 valid content blocks.
    """
    return _read_all(raw, ToolValidationError, "content", _check_block)


def validate_contents(raw: object, *, uri: str, mime_type: str | None) -> tuple[dict[str, object], ...]:
    """Return the contents of a resource, validated. The resource's URI and MIME type fill missing ones.

    Raises:
        ResourceValidationError: the value is not a list of at most 1,000 valid contents, or neither an element nor the
            resource has a MIME type.
    """

    def check(item: object, where: str, faults: Faults) -> dict[str, object]:
        members = {"uri": uri, **({} if mime_type is None else {"mimeType": mime_type}), **(as_object(item) or {})}
        _check_contents(members if as_object(item) is not None else item, where, faults, required=("uri",))
        if "mimeType" not in members:
            faults.add(where + "/mimeType", UNTYPED)
        return members

    return _read_all(raw, ResourceValidationError, "contents", check)


def validate_messages(raw: object) -> tuple[dict[str, object], ...]:
    """Return the messages of a prompt, validated.

    Raises:
        PromptValidationError: the value is not a list of at most 1,000 valid messages with the role user or assistant.
    """
    return _read_all(raw, PromptValidationError, "messages", _check_message)


def declare_contents(raw: object) -> tuple[dict[str, object], ...]:
    """Return contents of a declared handler, validated.

    URI and MIME type may be missing, because the resource has them.

    Raises:
        ResourceValidationError: the value is not a list of at most 1,000 contents that are valid otherwise.
    """

    def check(item: object, where: str, faults: Faults) -> dict[str, object]:
        _check_contents(item, where, faults, required=())
        return dict(as_object(item) or {})

    return _read_all(raw, ResourceValidationError, "contents", check)


def declare_messages(raw: object) -> tuple[dict[str, object], ...]:
    """Return messages of a declared handler, validated. An embedded resource may have neither text nor blob.

    Raises:
        PromptValidationError: the value is not a list of at most 1,000 messages that are valid otherwise.
    """

    def check(item: object, where: str, faults: Faults) -> dict[str, object]:
        return _check_message(item, where, faults, may_name=True)

    return _read_all(raw, PromptValidationError, "messages", check)


def _read_all(
    raw: object, kind: type[DefinitionInvalid], what: str, check: Callable[[object, str, Faults], dict[str, object]]
) -> tuple[dict[str, object], ...]:
    faults = Faults()
    items = as_list(copy_untrusted(raw, kind, what))
    if items is None:
        faults.add("", "must be a list")
    elif len(items) > MAX_BLOCKS:
        faults.add("", f"has more than {MAX_BLOCKS} elements")
        items = None
    read = tuple(check(item, point(index), faults) for index, item in enumerate(items or ()))
    faults.raise_as(kind, what)
    return read


def _check_message(raw: object, where: str, faults: Faults, *, may_name: bool = False) -> dict[str, object]:
    reader = FieldReader(raw, ("role", "content"), where=where, faults=faults)
    if reader.raw("role") == "system":
        reader.refuse("role", "must be user or assistant; MCP has no role system: use user")
    else:
        reader.choice("role", ROLES, required=True)
    reader.require("content")
    if reader.has("content"):
        _check_block(reader.raw("content"), reader.at("content"), faults, may_name=may_name)
    return dict(as_object(raw) or {})


def _check_block(raw: object, where: str, faults: Faults, *, may_name: bool = False) -> dict[str, object]:
    members = as_object(raw)
    kind = None if members is None else members.get("type")
    known = BLOCK_FIELDS.get(kind) if isinstance(kind, str) else None
    if members is None or known is None:
        reason = "must be an object" if members is None else f"must have a type of {', '.join(BLOCK_FIELDS)}"
        faults.add(where if members is None else where + "/type", reason)
        return {}
    reader = FieldReader(raw, known, where=where, faults=faults)
    read_annotations(reader)
    read_meta(reader)
    match kind:
        case "text":
            _check_text(reader)
        case "image" | "audio":
            _check_media(reader, str(kind))
        case "resource_link":
            _check_link(reader)
        case _:
            reader.require("resource")
            if reader.has("resource"):
                _check_contents(
                    reader.raw("resource"), reader.at("resource"), faults, required=("uri",), may_name=may_name
                )
    return dict(members)


def _check_text(reader: FieldReader) -> None:
    reader.require("text")
    if reader.has("text") and not isinstance(reader.raw("text"), str):
        reader.refuse("text", "must be a string")


def _check_media(reader: FieldReader, kind: str) -> None:
    reader.require("data", "mimeType")
    _check_bytes(reader, "data")
    mime_type = read_mime_type(reader)
    if mime_type is not None and not mime_type.lower().startswith(f"{kind}/"):
        reader.refuse("mimeType", f"must be of the kind {kind}/…")


def _check_link(reader: FieldReader) -> None:
    reader.string("name", max_length=MAX_TITLE_LENGTH, required=True)
    read_title(reader)
    read_description(reader)
    read_mime_type(reader)
    read_icons(reader)
    reader.whole("size", minimum=0, maximum=MAX_LINK_SIZE)
    reader.require("uri")
    _check_uri(reader)


def _check_contents(
    raw: object, where: str, faults: Faults, *, required: tuple[str, ...], may_name: bool = False
) -> None:
    reader = FieldReader(raw, CONTENTS_FIELDS, where=where, faults=faults)
    reader.require(*required)
    _check_uri(reader)
    if reader.has("mimeType") and not (
        isinstance(reader.raw("mimeType"), str) and is_mime_type(str(reader.raw("mimeType")))
    ):
        reader.refuse("mimeType", "is not a MIME type, such as text/plain")
    read_meta(reader)
    if reader.has("text") and reader.has("blob"):
        reader.refuse("blob", "cannot be combined with text")
    elif reader.has("text"):
        _check_text(reader)
    elif reader.has("blob"):
        _check_bytes(reader, "blob")
    elif reader.is_object and not may_name:
        reader.faults.add(where, "must have text or blob")


def _check_uri(reader: FieldReader) -> None:
    uri = reader.raw("uri")
    if reader.has("uri") and not (isinstance(uri, str) and is_uri(uri)):
        reader.refuse("uri", "must be an absolute URI, percent-encoded")


def _check_bytes(reader: FieldReader, name: str) -> None:
    written = reader.raw(name)
    if not reader.has(name):
        return
    try:
        base64.b64decode(cast("str", written), validate=True)
    except (binascii.Error, ValueError, TypeError):
        reader.refuse(name, "must be base64")
    else:
        if not isinstance(written, str):
            reader.refuse(name, "must be base64")
