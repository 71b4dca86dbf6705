"""Validation of results against the protocol: content blocks, resource contents and prompt messages."""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import cast

from gateway.definitions.contract.metadata import (
    MAX_TITLE_LENGTH,
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

MAX_BLOCKS = 1_000
UNTYPED = "is missing; set it here, or as mimeType of the definition"
MAX_SIZE = 2**53 - 1
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
    form = FieldReader(raw, ("role", "content"), where=where, faults=faults)
    if form.raw("role") == "system":
        form.refuse("role", "must be user or assistant; MCP has no role system: use user")
    else:
        form.choice("role", ROLES, required=True)
    form.require("content")
    if form.has("content"):
        _check_block(form.raw("content"), form.at("content"), faults, may_name=may_name)
    return dict(as_object(raw) or {})


def _check_block(raw: object, where: str, faults: Faults, *, may_name: bool = False) -> dict[str, object]:
    members = as_object(raw)
    kind = None if members is None else members.get("type")
    known = BLOCK_FIELDS.get(kind) if isinstance(kind, str) else None
    if members is None or known is None:
        reason = "must be an object" if members is None else f"must have a type of {', '.join(BLOCK_FIELDS)}"
        faults.add(where if members is None else where + "/type", reason)
        return {}
    form = FieldReader(raw, known, where=where, faults=faults)
    read_annotations(form)
    read_meta(form)
    match kind:
        case "text":
            _check_text(form)
        case "image" | "audio":
            _check_media(form, str(kind))
        case "resource_link":
            _check_link(form)
        case _:
            form.require("resource")
            if form.has("resource"):
                _check_contents(form.raw("resource"), form.at("resource"), faults, required=("uri",), may_name=may_name)
    return dict(members)


def _check_text(form: FieldReader) -> None:
    form.require("text")
    if form.has("text") and not isinstance(form.raw("text"), str):
        form.refuse("text", "must be text")


def _check_media(form: FieldReader, kind: str) -> None:
    form.require("data", "mimeType")
    _check_bytes(form, "data")
    mime_type = read_mime_type(form)
    if mime_type is not None and not mime_type.lower().startswith(f"{kind}/"):
        form.refuse("mimeType", f"must be of the kind {kind}/…")


def _check_link(form: FieldReader) -> None:
    form.text("name", max_length=MAX_TITLE_LENGTH, required=True)
    read_title(form)
    read_description(form)
    read_mime_type(form)
    read_icons(form)
    form.whole("size", minimum=0, maximum=MAX_SIZE)
    form.require("uri")
    _check_uri(form)


def _check_contents(
    raw: object, where: str, faults: Faults, *, required: tuple[str, ...], may_name: bool = False
) -> None:
    form = FieldReader(raw, CONTENTS_FIELDS, where=where, faults=faults)
    form.require(*required)
    _check_uri(form)
    if form.has("mimeType") and not (isinstance(form.raw("mimeType"), str) and is_mime_type(str(form.raw("mimeType")))):
        form.refuse("mimeType", "is not a MIME type, such as text/plain")
    read_meta(form)
    if form.has("text") and form.has("blob"):
        form.refuse("blob", "cannot be combined with text")
    elif form.has("text"):
        _check_text(form)
    elif form.has("blob"):
        _check_bytes(form, "blob")
    elif form.is_object and not may_name:
        form.faults.add(where, "must have text or blob")


def _check_uri(form: FieldReader) -> None:
    uri = form.raw("uri")
    if form.has("uri") and not (isinstance(uri, str) and is_uri(uri)):
        form.refuse("uri", "must be an absolute URI, percent-encoded")


def _check_bytes(form: FieldReader, name: str) -> None:
    written = form.raw(name)
    if not form.has(name):
        return
    try:
        base64.b64decode(cast("str", written), validate=True)
    except (binascii.Error, ValueError, TypeError):
        form.refuse(name, "must be base64")
    else:
        if not isinstance(written, str):
            form.refuse(name, "must be base64")
