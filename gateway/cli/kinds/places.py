"""Paths of the objects of a kind in the admin API, given a name, another key, an id, or a declaration."""

from typing import Any
from urllib.parse import quote

from gateway.cli.client.admin_api import path_of
from gateway.cli.client.admin_context import AdminContext
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.declarations import text_in
from gateway.cli.input.declared_items import address_and_fields
from gateway.cli.input.json_fields import JsonObject, text_at, to_objects
from gateway.cli.item_commands import BY_NAME, Naming
from gateway.domain.identifiers import is_minted
from gateway.domain.tenancy.keys import KeyState
from gateway.kinds.kind import Kind

RENAME = "rename"
"""The member of a declared change that gives the object another name."""
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


def naming_of(kind: Kind[Any]) -> Naming:
    """The placeholder for an object, and the function that returns the segment of its path."""
    if kind.is_operators:
        return Naming(metavar=kind.keyed.upper(), is_operators=True)
    if kind.is_found_by_key:
        return Naming(metavar="URI", find=lambda context, name: segment_of(context, kind, name))
    if kind.key_in:
        return Naming(metavar="NAME", find=lambda context, name: segment_of(context, kind, name))
    if kind.address != "id":
        return BY_NAME
    return Naming(metavar=kind.name.upper(), find=lambda context, given: find_id(context, kind, given))


def find_id(context: AdminContext, kind: Kind[Any], given: str) -> str:
    """The id of the object with this id or name; of several with the name, the active one.

    Raises:
        Failure: no object has the name, or several have it.
    """
    if is_minted(given):
        return given
    items = [one for one in context.admin.pages(place_of(context, kind)) if given in {one.get("id"), one.get("name")}]
    found = [one for one in items if text_at(one, "status", "state") in {"", KeyState.ACTIVE}] or items
    if not found:
        raise Failure(f"the tenant has no {kind.words} with the id or name {given}", ExitCode.NOT_FOUND)
    if len(found) > 1:
        ids = ", ".join(text_at(one, "id") for one in found)
        raise Failure(f"{len(found)} {kind.plural_words} have the name {given}; give an id: {ids}", ExitCode.USAGE)
    return text_at(found[0], "id")


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
        raise Failure(f"no such {kind.words}", ExitCode.NOT_FOUND)
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
