"""Endpoints of tool changes, and of overrides below their tools and sources; `gateway.admin.kinds` has the others.

A change of an imported tool is stored as its override.
"""

from dataclasses import replace
from functools import partial
from typing import Annotated

from pydantic import Field

from gateway.admin.admission import WorkKind
from gateway.admin.crud import Noun, each, endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, AnyRequest, Plain
from gateway.admin.kinds import KindEndpoints
from gateway.admin.pagination import read_page
from gateway.catalog.kinds.overrides import (
    OVERRIDES,
    is_imported,
    override_tool,
    page_of_source,
    reset_tool,
)
from gateway.catalog.kinds.primitives import TOOLS
from gateway.domain.members.formats import TOOL_NAME
from gateway.domain.overrides import Override, OverrideStatus
from gateway.errors import Fault, InvalidBody, NotFound
from gateway.kinds.members import settable
from gateway.kinds.primitives import TOOL
from gateway.kinds.sources import OVERRIDE
from gateway.web.kinds.annotations import changed_fields, make_model, page_model
from gateway.web.kinds.models import models_of
from gateway.web.models import BodyModel, NoBody, NoQuery, PageQuery, ResponseModel

_TOOLS = KindEndpoints(collection=TOOLS)
_OWN = [one for one in settable(TOOL.of) if one.setter is None]
_IMPORTED = [one for one in settable(Override) if one.setter is None]
_NAME = Annotated[
    str | None,
    Field(pattern=TOOL_NAME, description="The name; the old name keeps working for 30 days."),
]
_ABOUT = """Changes of a tool; absent fields keep their value.

`definition` and `handler` are for the tenant's own tools; `name`, `title`, `description`, `hidden`, `annotations`,
`pinned` and `result` are for imported tools. Changes of an imported tool are stored as an override; null restores
the document's value."""
_UPDATE: type[BodyModel] = make_model(
    "ToolUpdate", BodyModel, _ABOUT, {**changed_fields(_OWN), "name": (_NAME, None), **changed_fields(_IMPORTED)}
)
_SHOWN: type[ResponseModel] = make_model(
    "KeptOverrideShown",
    models_of(OVERRIDE).shown,
    "The override of a source's tool, and the name of the tool.",
    {
        "name": (Annotated[str | None, Field(description="The name that the override gives; null if none.")], ...),
        "tool": (Annotated[str | None, Field(description="The name of the tool, as in `status`.")], ...),
    },
)
_PAGE = page_model("OverridePage", _SHOWN, "One page of a source's overrides, by method and path.")


async def update_tool(admin: AdminDependencies, call: AnyRequest) -> AdminResponse:
    """Change the tenant's own tool directly, or an imported tool by its override."""
    name, sent = call.path["name"], call.body.sent()
    own, imported = {one.name for one in _OWN}, {"name", *(one.name for one in _IMPORTED)}
    if not await is_imported(call.tenant, admin.catalog, name):
        await TOOLS.get(call.tenant, admin.catalog, name)
        _refuse(
            [field for field in _UPDATE.model_fields if field in sent.keys() - own],
            "only imported tools have overrides",
        )
        _refuse([field for field in ("enabled",) if sent.get(field, True) is None], "must not be null")
        return await _TOOLS.change(admin, call)
    _refuse([field for field in sent if field not in imported], "an imported tool has the one of its document")

    def revise(current: Override) -> Override:
        revised = models_of(OVERRIDE).revise(call.body, current)
        return replace(revised, name=revised.name or "")

    await override_tool(call.tenant, admin.catalog, name, revise, by=call.by, expected=call.expected)
    return await _TOOLS.noun.respond(admin, call, await TOOLS.get(call.tenant, admin.catalog, name))


async def delete_tool_override(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Remove the override of an imported tool, so that its document applies again."""
    await reset_tool(call.tenant, admin.catalog, call.path["name"], by=call.by, expected=call.expected)
    return AdminResponse(status=204)


async def list_overrides(admin: AdminDependencies, call: AdminRequest[NoBody, PageQuery]) -> AdminResponse:
    """List the overrides of a source, including those whose operation no longer exists."""
    source = call.path["name"]
    read = partial(page_of_source, call.tenant, admin.catalog, source)
    page = partial(read_page, admin.cursors, call.tenant, f"overrides:{source}", call.query)
    found, cursor = await page(read=read, key=lambda one: one.operation)
    return AdminResponse(content=_PAGE(items=[_show(one) for one in found], next_cursor=cursor))


def _show(one: Override) -> ResponseModel:
    shown = models_of(OVERRIDE).show(one, OverrideStatus(tool=one.tool))
    return _SHOWN.model_validate({**shown.model_dump(), "name": one.given_name, "tool": one.tool})


def _refuse(fields: list[str], reason: str) -> None:
    if fields:
        faults = [Fault(pointer=f"/{field}", reason=reason) for field in fields]
        raise InvalidBody(f"the body at /{fields[0]}: {reason}", faults=faults)


_OF_SOURCE: Noun[Override] = Noun(
    singular="source_override",
    path="/tenants/{t}/sources/{name}/overrides",
    key="id",
    shown=_SHOWN,
    show=each(_show),
)
"""The paths of earlier releases."""


async def show_override(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show an override."""
    return await _OF_SOURCE.respond(admin, call, await _find(admin, call))


async def delete_override(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Remove an override, even if its operation no longer exists."""
    one = await _find(admin, call)
    await OVERRIDES.remove(call.tenant, admin.catalog, one.id, by=call.by, expected=call.expected)
    return AdminResponse(status=204)


async def _find(admin: AdminDependencies, call: Plain) -> Override:
    """The override of the path.

    Raises:
        NotFound: the tenant has none, or it is of another source.
    """
    one = await OVERRIDES.get(call.tenant, admin.catalog, call.path["id"])
    if call.path["name"] not in {one.source, one.source_id}:
        raise NotFound("no such override of this source")
    return one


ENDPOINTS = (
    endpoint(
        "PATCH",
        "/tenants/{t}/tools/{name}",
        update_tool,
        _UPDATE,
        query=NoQuery,
        responses={200: models_of(TOOL).shown},
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
        query=NoQuery,
        responses={204: None},
        problems={409},
        has_tag=True,
    ),
    endpoint(
        "GET",
        _OF_SOURCE.path,
        list_overrides,
        NoBody,
        query=PageQuery,
        responses={200: _PAGE},
        called="list_source_overrides",
    ),
    endpoint(
        "GET",
        _OF_SOURCE.item,
        show_override,
        NoBody,
        query=NoQuery,
        responses={200: _SHOWN},
        called="get_source_override",
        has_tag=True,
    ),
    endpoint(
        "DELETE",
        _OF_SOURCE.item,
        delete_override,
        NoBody,
        query=NoQuery,
        responses={204: None},
        called="delete_source_override",
        problems={409},
        has_tag=True,
    ),
)
