"""Request handlers that tools, resources, resource templates and prompts share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.list_search import ListRules
from gateway.admin.pagination import read_list
from gateway.admin.requests.lists import PrimitiveListQuery, UriListQuery
from gateway.admin.requests.primitives import PrimitiveSent, PrimitiveUpdate, UriQuery
from gateway.admin.responses.primitives import PrimitiveShown, PrimitiveValid
from gateway.admin.upserts import Upsert, is_id, put
from gateway.catalog.primitives import primitives
from gateway.catalog.primitives import queries as listing
from gateway.catalog.primitives.primitives import Address
from gateway.catalog.primitives.queries import Listed
from gateway.catalog.primitives.validation import PrimitiveDraft
from gateway.domain.primitives import Family
from gateway.errors import Fault, InvalidBody, NotFound
from gateway.web.models import BodyModel, NoBody, NoQuery, QueryModel

B = TypeVar("B", bound=BodyModel)
Q = TypeVar("Q", bound=QueryModel)
U = TypeVar("U", bound=PrimitiveUpdate)

_IDENTIFYING_MEMBERS = {
    Family.TOOL: "name",
    Family.PROMPT: "name",
    Family.RESOURCE: "uri",
    Family.TEMPLATE: "uriTemplate",
}
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimitiveNoun:
    """One family of primitives in the admin API; `key` is the path parameter of an item: `name` or `id`."""

    family: Family
    singular: str
    plural: str
    path: str
    key: str
    show: Callable[[Listed], PrimitiveShown]
    shown: type[PrimitiveShown]
    page: type[BaseModel]
    query: type[PrimitiveListQuery]
    listing: ListRules[Listed]


async def list_items(
    noun: PrimitiveNoun, admin: AdminDependencies, call: AdminRequest[NoBody, PrimitiveListQuery]
) -> AdminResponse:
    """List the tenant's primitives of a family, or only the one with the URI; an unknown URI yields an empty list."""
    query = call.query
    if isinstance(query, UriListQuery) and query.uri is not None:
        shown, cursor = await _find(noun, admin, call, query.uri), None
    else:
        read = partial(listing.page_primitives, call.tenant, admin.catalog, noun.family)
        shown, cursor = await read_list(admin.cursors, call.tenant, noun.listing, query, read=read)
    return AdminResponse(content=noun.page(items=[noun.show(listed) for listed in shown], next_cursor=cursor))


async def create_item(
    noun: PrimitiveNoun, admin: AdminDependencies, call: AdminRequest[PrimitiveSent, NoQuery]
) -> AdminResponse:
    """Create a primitive."""
    return await _create(noun, admin, call)


async def check_item(
    noun: PrimitiveNoun, admin: AdminDependencies, call: AdminRequest[PrimitiveSent, NoQuery]
) -> AdminResponse:
    """Validate a primitive without storing it."""
    tried = await primitives.try_primitive(call.tenant, admin.catalog, noun.family, _draft(call.body))
    return AdminResponse(content=PrimitiveValid.of(tried))


async def get_item(noun: PrimitiveNoun, admin: AdminDependencies, call: AdminRequest[NoBody, Q]) -> AdminResponse:
    """Show a primitive."""
    address = _requested_address(noun, call)
    found = await listing.get_listed(call.tenant, admin.catalog, noun.family, address, takes_old_names=True)
    return show_item(noun, found)


async def replace_item(
    noun: PrimitiveNoun, admin: AdminDependencies, call: AdminRequest[PrimitiveSent, Q]
) -> AdminResponse:
    """Replace the definition and handler of a primitive, or create it; absent fields have their default.

    A request that addresses the primitive by id does not create one.
    """
    name = _requested_address(noun, call)

    async def create() -> AdminResponse:
        member = _IDENTIFYING_MEMBERS[noun.family]
        if is_id(name) or (noun.key == "id" and not isinstance(call.query, UriQuery)):
            raise NotFound(f"no such {noun.family.replace('_', ' ')}; to create one, use a name or URI, not an id")
        if call.body.definition.get(member) != name:
            reason = "must equal the name in the path or query, because the object does not exist yet"
            faults = [Fault(pointer=f"/definition/{member}", reason=reason)]
            raise InvalidBody(f"the body at /definition/{member}: {reason}", faults=faults)
        return await _create(noun, admin, call)

    upsert = Upsert(
        read=partial(listing.get_listed, call.tenant, admin.catalog, noun.family, name),
        replace=partial(_update, noun, admin, call, lambda _: _draft(call.body)),
        create=create,
    )
    return await put(call, upsert)


async def update_item(noun: PrimitiveNoun, admin: AdminDependencies, call: AdminRequest[U, Q]) -> AdminResponse:
    """Change a primitive; absent fields keep their value."""
    body = call.body

    def revise(draft: PrimitiveDraft) -> PrimitiveDraft:
        return PrimitiveDraft(
            definition=draft.definition if body.definition is None else body.definition,
            handler=draft.handler if body.handler is None else body.handler,
            safety=body.safety if "safety" in body.model_fields_set else draft.safety,
            enabled=draft.enabled if body.enabled is None else body.enabled,
        )

    return await _update(noun, admin, call, revise)


async def delete_item(noun: PrimitiveNoun, admin: AdminDependencies, call: AdminRequest[NoBody, Q]) -> AdminResponse:
    """Delete a primitive."""
    address = Address(family=noun.family, name=_requested_address(noun, call))
    await primitives.remove_primitive(call.tenant, admin.catalog, address, by=call.by, expected=call.expected)
    return AdminResponse(status=204)


def show_item(noun: PrimitiveNoun, listed: Listed) -> AdminResponse:
    """Build the response for one primitive."""
    return AdminResponse(content=noun.show(listed), tag=listed.tag)


async def _create(noun: PrimitiveNoun, admin: AdminDependencies, call: AdminRequest[PrimitiveSent, Q]) -> AdminResponse:
    made = await primitives.create_primitive(call.tenant, admin.catalog, noun.family, _draft(call.body), by=call.by)
    segment = made.name if noun.key == "name" and _is_plain(made.name) else made.id
    location = f"{noun.path.replace('{t}', quote(call.path['t']))}/{quote(segment)}"
    return replace(show_item(noun, made), status=201, location=location)


async def _find(
    noun: PrimitiveNoun, admin: AdminDependencies, call: AdminRequest[NoBody, PrimitiveListQuery], uri: str
) -> Sequence[Listed]:
    try:
        found = await listing.get_listed(call.tenant, admin.catalog, noun.family, uri)
    except NotFound:
        return []
    return [found] if noun.listing.matches(found, call.query) else []


async def _update(
    noun: PrimitiveNoun,
    admin: AdminDependencies,
    call: AdminRequest[B, Q],
    revise: Callable[[PrimitiveDraft], PrimitiveDraft],
) -> AdminResponse:
    address = Address(family=noun.family, name=_requested_address(noun, call))
    update = partial(primitives.update_primitive, call.tenant, admin.catalog, address)
    return show_item(noun, await update(revise, by=call.by, expected=call.expected))


def _requested_address(noun: PrimitiveNoun, call: AdminRequest[B, Q]) -> str:
    """Return the name, URI or id in the request."""
    return call.query.uri if isinstance(call.query, UriQuery) else call.path[noun.key]


def _is_plain(name: str) -> bool:
    """True if a path can contain the name unquoted. A name of dots only may be a relative segment (RFC 3986)."""
    return _UNRESERVED.issuperset(name) and bool(name.strip("."))


def _draft(body: PrimitiveSent) -> PrimitiveDraft:
    return PrimitiveDraft(definition=body.definition, handler=body.handler, safety=body.safety, enabled=body.enabled)
