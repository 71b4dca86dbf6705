"""Endpoints of live sources: editors, MCP servers and programs whose primitives exist while they are attached."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from gateway.admin.crud import Noun, Options, endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.limits import WorkKind
from gateway.admin.list_search import LIVE_PRIMITIVES, LIVE_SOURCES
from gateway.admin.pagination import read_list
from gateway.admin.requests.live_sources import (
    LivePrimitiveListQuery,
    LiveSourceAccept,
    LiveSourceCreate,
    LiveSourceListQuery,
    LiveSourceReplace,
    LiveSourceUpdate,
)
from gateway.admin.responses.live_sources import (
    LivePrimitivePage,
    LivePrimitiveShown,
    LiveSourceDetails,
    LiveSourcePage,
    LiveSourceShown,
)
from gateway.admin.upserts import Upsert, check_new_name, put
from gateway.catalog.etags import tag_of
from gateway.catalog.live import live_sources
from gateway.catalog.live.attachments import Acceptance, accept_changes
from gateway.catalog.live.live_sources import LiveSourceDraft
from gateway.catalog.live.overview import describe_live_sources, page_live_primitives
from gateway.domain.identifiers import TenantId
from gateway.domain.live_sources import LiveSource
from gateway.domain.members.formats import NAME
from gateway.web.models import NoBody, NoQuery

_REFUSALS = Options(problems={409, 422, 429})


async def create_live_source(admin: AdminDependencies, call: AdminRequest[LiveSourceCreate, NoQuery]) -> AdminResponse:
    """Create a live source; the gateway attaches to it at once."""
    return await _create(admin, call, call.body.name)


async def show_live_source(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show a live source with its attachment and the held definitions."""
    found = await live_sources.get_live_source(call.tenant, admin.catalog, call.path["name"])
    return await _details(admin, call.tenant, found)


async def replace_live_source(
    admin: AdminDependencies, call: AdminRequest[LiveSourceReplace, NoQuery]
) -> AdminResponse:
    """Replace the settings of a live source, or create it; absent fields have their default."""
    name = call.path["name"]

    async def replace_all() -> AdminResponse:
        return await _update(admin, call, lambda draft: _draft(call.body, draft.name))

    async def create() -> AdminResponse:
        check_new_name("live source", name, NAME)
        return await _create(admin, call, name)

    read = partial(live_sources.get_live_source, call.tenant, admin.catalog, name)
    return await put(call, Upsert(read=read, replace=replace_all, create=create))


async def update_live_source(admin: AdminDependencies, call: AdminRequest[LiveSourceUpdate, NoQuery]) -> AdminResponse:
    """Change a live source, and reattach it; absent fields keep their value."""
    sent = call.body.sent()
    if "prefix" in sent:
        sent["prefix"] = sent["prefix"] or ""
    for field in ("include", "exclude"):
        if field in sent:
            sent[field] = tuple(sent[field])
    return await _update(admin, call, lambda draft: replace(draft, **sent))


async def accept_live_definitions(
    admin: AdminDependencies, call: AdminRequest[LiveSourceAccept, NoQuery]
) -> AdminResponse:
    """Accept held definitions, so that clients see them."""
    wanted = Acceptance(names=call.body.names, digests=call.body.digests)
    accept = partial(accept_changes, call.tenant, admin.catalog, call.path["name"], wanted)
    return await _details(admin, call.tenant, await accept(by=call.by, expected=call.expected))


async def reattach_live_source(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Reattach a live source now, before the next scheduled attempt."""
    found = await live_sources.reattach_live_source(call.tenant, admin.catalog, call.path["name"])
    return await _NOUN.respond(admin, call, found)


async def list_live_source_primitives(
    admin: AdminDependencies, call: AdminRequest[NoBody, LivePrimitiveListQuery]
) -> AdminResponse:
    """List the primitives of a live source: visible, held, hidden and absent ones."""
    name = call.path["name"]
    source = await live_sources.get_live_source(call.tenant, admin.catalog, name)
    read = partial(page_live_primitives, call.tenant, admin.catalog, source.id)
    rules = replace(LIVE_PRIMITIVES, name=f"{LIVE_PRIMITIVES.name}:{source.id}")
    found, cursor = await read_list(admin.cursors, call.tenant, rules, call.query, read=read)
    items = [LivePrimitiveShown.of(one, source) for one in found]
    return AdminResponse(content=LivePrimitivePage(items=items, next_cursor=cursor))


async def _create(admin: AdminDependencies, call: AdminRequest[LiveSourceReplace, NoQuery], name: str) -> AdminResponse:
    made = await live_sources.create_live_source(call.tenant, admin.catalog, _draft(call.body, name), by=call.by)
    return _NOUN.to_created(call, made, await _NOUN.respond(admin, call, made))


async def _update(
    admin: AdminDependencies,
    call: AdminRequest[LiveSourceReplace, NoQuery] | AdminRequest[LiveSourceUpdate, NoQuery],
    revise: Callable[[LiveSourceDraft], LiveSourceDraft],
) -> AdminResponse:
    update = partial(live_sources.update_live_source, call.tenant, admin.catalog, call.path["name"], revise)
    return await _NOUN.respond(admin, call, await update(by=call.by, expected=call.expected))


async def _show(admin: AdminDependencies, tenant: TenantId, found: Sequence[LiveSource]) -> Sequence[LiveSourceShown]:
    return [LiveSourceShown.of(one) for one in await describe_live_sources(tenant, admin.catalog, found)]


async def _details(admin: AdminDependencies, tenant: TenantId, found: LiveSource) -> AdminResponse:
    [overview] = await describe_live_sources(tenant, admin.catalog, [found])
    return AdminResponse(content=LiveSourceDetails.of(overview), tag=tag_of(found))


def _draft(body: LiveSourceReplace, name: str) -> LiveSourceDraft:
    return LiveSourceDraft(
        name=name,
        kind=body.kind,
        settings=body.settings,
        prefix=body.prefix or "",
        credential=body.credential,
        caller_credential=body.caller_credential,
        include=tuple(body.include),
        exclude=tuple(body.exclude),
        safety=body.safety,
        accepts_changes=body.accepts_changes,
        expose=body.expose,
        enabled=body.enabled,
    )


_NOUN: Noun[LiveSource] = Noun(
    singular="live_source", path="/tenants/{t}/live-sources", key="name", shown=LiveSourceShown, show=_show
)

ENDPOINTS = (
    _NOUN.list_route(
        "List the tenant's live sources, with the state of their attachments.",
        live_sources.page_live_sources,
        LIVE_SOURCES,
        LiveSourceListQuery,
        LiveSourcePage,
    ),
    _NOUN.create_route(create_live_source, LiveSourceCreate, **_REFUSALS),
    endpoint("GET", _NOUN.item, show_live_source, NoBody, NoQuery, {200: LiveSourceDetails}, has_tag=True),
    _NOUN.upsert_route(replace_live_source, LiveSourceReplace, **_REFUSALS),
    _NOUN.update_route(update_live_source, LiveSourceUpdate, **_REFUSALS),
    _NOUN.delete_route(
        "Remove a live source with its primitives and their accepted definitions.", live_sources.remove_live_source
    ),
    endpoint(
        "POST",
        f"{_NOUN.item}/accept",
        accept_live_definitions,
        LiveSourceAccept,
        NoQuery,
        {200: LiveSourceDetails},
        problems={409, 422},
        has_tag=True,
    ),
    _NOUN.action_route("reattach", reattach_live_source, work=WorkKind.OUTBOUND),
    endpoint(
        "GET",
        f"{_NOUN.item}/primitives",
        list_live_source_primitives,
        NoBody,
        LivePrimitiveListQuery,
        {200: LivePrimitivePage},
    ),
)
