"""Endpoints of tool changes and overrides. A change of an imported tool is stored as an override of its document."""

from dataclasses import replace
from functools import partial

from gateway.admin.admission import WorkKind
from gateway.admin.crud import endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.kinds import KindEndpoints
from gateway.admin.pagination import read_page
from gateway.admin.requests.overrides import IMPORTED_FIELDS, OWN_FIELDS, ToolUpdate
from gateway.admin.responses.overrides import KeptOverrideShown, OverridePage
from gateway.catalog.kinds.primitives import TOOLS, show_listed
from gateway.catalog.overrides import overrides
from gateway.catalog.overrides.overrides import StoredOverride
from gateway.domain.overrides import OverrideFields
from gateway.errors import Fault, InvalidBody
from gateway.kinds.primitives import TOOL
from gateway.web.kinds.models import models_of
from gateway.web.models import NoBody, NoQuery, PageQuery

_TOOLS = KindEndpoints(collection=TOOLS)
_SETTABLE = ("name", "title", "description", "hidden", "enabled", "safety", "pinned")
_NESTED = ("annotations", "result")


async def update_tool(admin: AdminDependencies, call: AdminRequest[ToolUpdate, NoQuery]) -> AdminResponse:
    """Change the tenant's own tool directly, or an imported tool by its override."""
    name, sent = call.path["name"], call.body.model_fields_set
    if not await overrides.is_imported(call.tenant, admin.catalog, name):
        await TOOLS.get(call.tenant, admin.catalog, name)
        _refuse([field for field in IMPORTED_FIELDS if field in sent], "only imported tools have overrides")
        _refuse(["enabled"] if "enabled" in sent and call.body.enabled is None else [], "must not be null")
        return await _TOOLS.change(admin, call)
    _refuse([field for field in OWN_FIELDS if field in sent], "an imported tool has the one of its document")
    change = partial(_revise, call.body)
    listed = await overrides.override_tool(call.tenant, admin.catalog, name, change, by=call.by, expected=call.expected)
    [content] = await _TOOLS.noun.show(admin, call.tenant, [show_listed(TOOL, listed)])
    return AdminResponse(content=content, tag=listed.tag)


async def delete_tool_override(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Remove the override of an imported tool, so that its document applies again."""
    await overrides.reset_tool(call.tenant, admin.catalog, call.path["name"], by=call.by, expected=call.expected)
    return AdminResponse(status=204)


async def list_overrides(admin: AdminDependencies, call: AdminRequest[NoBody, PageQuery]) -> AdminResponse:
    """List the overrides of a source, including those whose operation no longer exists."""
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
    """Remove an override, even if its operation no longer exists."""
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


def _identity(kept: StoredOverride) -> str:
    return kept.override.identity


_LIST = "/tenants/{t}/sources/{name}/overrides"

ENDPOINTS = (
    endpoint(
        "PATCH",
        "/tenants/{t}/tools/{name}",
        update_tool,
        ToolUpdate,
        NoQuery,
        {200: models_of(TOOL).shown},
        summary="Change, enable or disable a tool; absent fields keep their value. Changes of an imported tool are "
        "stored as an override.",
        problems={409, 422, 429},
        work=WorkKind.CHECK,
        has_tag=True,
    ),
    endpoint(
        "DELETE",
        "/tenants/{t}/tools/{name}/override",
        delete_tool_override,
        NoBody,
        NoQuery,
        {204: None},
        problems={409},
        has_tag=True,
    ),
    endpoint("GET", _LIST, list_overrides, NoBody, PageQuery, {200: OverridePage}),
    endpoint("GET", f"{_LIST}/{{id}}", get_override, NoBody, NoQuery, {200: KeptOverrideShown}, has_tag=True),
    endpoint(
        "DELETE",
        f"{_LIST}/{{id}}",
        delete_override,
        NoBody,
        NoQuery,
        {204: None},
        problems={409},
        has_tag=True,
    ),
)
