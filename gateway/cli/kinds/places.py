"""Paths of the objects of a kind in the admin API, given a name, another key, an id, or a declaration."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from gateway.cli.client.admin_api import path_of
from gateway.cli.client.admin_context import AdminContext
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.declarations import text_in
from gateway.cli.input.declared_items import address_and_fields
from gateway.cli.input.json_fields import JsonObject, text_at, to_objects
from gateway.cli.object_names import Naming, known_by, naming_by_id, naming_by_key, suggest
from gateway.domain.identifiers import is_minted
from gateway.kinds.kind import Kind

RENAME = "rename"
"""The member of a declared change that gives the object another name."""
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


def naming_of(kind: Kind[Any]) -> Naming:
    """The naming of the objects of a kind."""
    if kind.is_operators:
        return naming_by_key(kind, metavar=kind.keyed.upper(), is_operators=True)
    if kind.is_found_by_key or kind.key_in:
        naming = naming_by_key(kind, metavar="URI" if kind.is_found_by_key else "NAME")

        def find(context: AdminContext, name: str) -> str:
            return segment_of(context, kind, name)

        return replace(naming, find=find)
    if kind.address == "id":
        return naming_by_id(kind, metavar=f"{known_by(kind)[0].upper()}|ID")
    return naming_by_key(kind, metavar="NAME")


def place_of(context: AdminContext, kind: Kind[Any], *parts: str) -> str:
    """The path of the list of a kind, or of an object."""
    return path_of(kind.plural, *parts) if kind.is_operators else context.tenant_path(kind.plural, *parts)


def segment_of(context: AdminContext, kind: Kind[Any], name: str) -> str:
    """The segment of the path of an object: its name, or its id if a path cannot contain the name.

    Raises:
        Failure: there is no such object.
    """
    if is_minted(name) or (kind.is_named and is_plain(name)):
        return name
    path = context.tenant_path(kind.plural)
    if kind.is_named:
        items = list(context.admin.pages(path))
    else:
        items = to_objects(context.admin.get(f"{path}?{kind.query_key}={quote(name, safe='')}").get("items"))
    item = next((item for item in items if text_at(item, kind.keyed) == name), None)
    if item is None:
        near = suggest(context, naming_of(kind), name)
        raise Failure(f"no such {kind.words}{near}", ExitCode.NOT_FOUND, is_suggested=True)
    return text_at(item, "id")


def is_plain(name: str) -> bool:
    """True if a path can contain the name unquoted."""
    return _UNRESERVED.issuperset(name) and bool(name.strip("."))


def send_declared(
    context: AdminContext, kind: Kind[Any], method: str, body: JsonObject, *, replaces: bool = False
) -> JsonObject:
    """Send a declaration to its object; a PUT creates the object unless it exists. `replaces` permits losses.

    Raises:
        Failure: the declaration does not name its object, or was refused.
    """
    query = "?replace=true" if replaces else ""
    if not kind.key_in:
        member = kind.keyed if kind.is_operators else kind.address
        address, fields = address_and_fields(body, member)
        if kind.address == "id":
            address = naming_of(kind).find(context, address)
        fields = {**fields, member: address} if kind.is_operators and method == "PUT" else fields
        if kind.is_renamed and method == "PATCH" and RENAME in fields:
            fields = {**fields, member: fields[RENAME]}
            del fields[RENAME]
        found = naming_of(kind).find(context, address)
        return context.admin.send(method, place_of(context, kind, found) + query, fields)
    key = text_in(body, kind.keyed) or kind.key_sent(body)
    if not key:
        raise Failure(f"/{'/'.join(kind.key_in)}: required", ExitCode.USAGE)
    fields = {name: value for name, value in body.items() if name != kind.keyed}
    path = context.tenant_path(kind.plural)
    if kind.is_found_by_key and not is_minted(key):
        addressed = f"{path}?{kind.query_key}={quote(key, safe='')}"
        return context.admin.send(method, addressed + query.replace("?", "&"), fields)
    try:
        item = context.tenant_path(kind.plural, segment_of(context, kind, key))
        return context.admin.send(method, item + query, fields)
    except Failure as failure:
        if method != "PUT" or is_plain(key) or failure.exit_code is not ExitCode.NOT_FOUND:
            raise
    return context.admin.send("POST", path, fields)  # a path cannot contain this name
