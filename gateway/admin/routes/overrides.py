"""Endpoints of tool changes and overrides. A change of an imported tool is stored as an override of its document."""

from dataclasses import replace
from functools import partial

from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Endpoint, Plain
from gateway.admin.pagination import read_page
from gateway.admin.requests.models import NoBody, NoQuery, PageQuery
from gateway.admin.requests.overrides import IMPORTED_FIELDS, OWN_FIELDS, ToolUpdate
from gateway.admin.responses.overrides import KeptOverrideShown, OverridePage
from gateway.admin.routes.primitives import PrimitiveNoun, show_item, update_item
from gateway.catalog.overrides import overrides
from gateway.catalog.overrides.overrides import KeptOverride
from gateway.catalog.primitives import queries as listing
from gateway.domain.overrides import OverrideFields
from gateway.errors import Fault, InvalidBody

_SETTABLE = ("name", "title", "description", "hidden", "enabled", "safety", "pinned")
_NESTED = ("annotations", "result")


async def update_tool(
    noun: PrimitiveNoun, admin: AdminDependencies, call: AdminRequest[ToolUpdate, NoQuery]
) -> AdminResponse:
    """Change the tenant's own tool directly, or an imported tool by its override."""
    name, sent = call.path["name"], call.body.model_fields_set
    if not await overrides.is_imported(call.tenant, admin.catalog, name):
        await listing.get_listed(call.tenant, admin.catalog, noun.family, name)
        _refuse([field for field in IMPORTED_FIELDS if field in sent], "only imported tools have overrides")
        _refuse(["enabled"] if "enabled" in sent and call.body.enabled is None else [], "must not be null")
        return await update_item(noun, admin, call)
    _refuse([field for field in OWN_FIELDS if field in sent], "an imported tool has its document's")
    change = partial(_revise, call.body)
    listed = await overrides.override_tool(call.tenant, admin.catalog, name, change, by=call.by, expected=call.expected)
    return show_item(noun, listed)


async def delete_tool_override(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Remove the override of an imported tool."""
    await overrides.reset_tool(call.tenant, admin.catalog, call.path["name"], by=call.by, expected=call.expected)
    return AdminResponse(status=204)


async def list_overrides(admin: AdminDependencies, call: AdminRequest[NoBody, PageQuery]) -> AdminResponse:
    """List the overrides of a source, by method and path."""
    source = call.path["name"]
    read = partial(overrides.page_overrides, call.tenant, admin.catalog, source)
    listing = f"overrides:{source}"
    shown, cursor = await read_page(admin.cursors, call.tenant, listing, call.query, read=read, key=_identity)
    return AdminResponse(content=OverridePage(items=[KeptOverrideShown.kept(one) for one in shown], next_cursor=cursor))


async def get_override(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show an override."""
    kept = await overrides.get_override(call.tenant, admin.catalog, call.path["name"], call.path["id"])
    return AdminResponse(content=KeptOverrideShown.kept(kept), tag=kept.tag)


async def delete_override(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Delete an override."""
    remove = partial(overrides.remove_override, call.tenant, admin.catalog, call.path["name"], call.path["id"])
    await remove(by=call.by, expected=call.expected)
    return AdminResponse(status=204)


def _revise(body: ToolUpdate, changes: OverrideFields) -> OverrideFields:
    """Apply the sent fields to the override; null clears a field."""
    sent = {name: getattr(body, name) for name in _SETTABLE if name in body.model_fields_set}
    for name in _NESTED:
        if name in body.model_fields_set:
            value = getattr(body, name)
            sent[name] = None if value is None else value.model_dump(exclude_none=True)
    return replace(changes, **sent)


def _refuse(fields: list[str], reason: str) -> None:
    if fields:
        faults = [Fault(pointer=f"/{field}", reason=reason) for field in fields]
        raise InvalidBody(f"the body at /{fields[0]}: {reason}", faults=faults)


def _identity(kept: KeptOverride) -> str:
    return kept.override.identity


_LIST = "/tenants/{t}/sources/{name}/overrides"

ENDPOINTS = (
    Endpoint(
        method="DELETE",
        path="/tenants/{t}/tools/{name}/override",
        summary="Remove the override of an imported tool: its document applies again.",
        handle=delete_tool_override,
        body=NoBody,
        query=NoQuery,
        answers={204: None},
        problems=frozenset({409}),
        has_tag=True,
    ),
    Endpoint(
        method="GET",
        path=_LIST,
        summary="List the overrides of a source, also those whose operation is gone.",
        handle=list_overrides,
        body=NoBody,
        query=PageQuery,
        answers={200: OverridePage},
    ),
    Endpoint(
        method="GET",
        path=f"{_LIST}/{{id}}",
        summary="Show an override.",
        handle=get_override,
        body=NoBody,
        query=NoQuery,
        answers={200: KeptOverrideShown},
        has_tag=True,
    ),
    Endpoint(
        method="DELETE",
        path=f"{_LIST}/{{id}}",
        summary="Remove an override, also one whose operation is gone.",
        handle=delete_override,
        body=NoBody,
        query=NoQuery,
        answers={204: None},
        problems=frozenset({409}),
        has_tag=True,
    ),
)
