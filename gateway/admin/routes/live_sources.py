"""Endpoints of live sources beside the verbs of their kind: acceptance, another attempt to attach, and primitives."""

from dataclasses import replace
from functools import partial

from gateway.admin.admission import WorkKind
from gateway.admin.crud import endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.kinds import KindEndpoints
from gateway.admin.list_search import LIVE_PRIMITIVES
from gateway.admin.pagination import read_list
from gateway.admin.requests.live_sources import LivePrimitiveListQuery, LiveSourceAccept
from gateway.admin.responses.live_sources import LivePrimitivePage, LivePrimitiveShown
from gateway.catalog.kinds.live_sources import LIVE_SOURCES
from gateway.catalog.kinds.live_sources import reattach_live_source as reattach
from gateway.catalog.live.attachments import Acceptance, accept_changes
from gateway.catalog.live.overview import page_live_primitives
from gateway.web.models import NoBody, NoQuery

_NOUN = KindEndpoints(collection=LIVE_SOURCES).noun


async def accept_live_definitions(
    admin: AdminDependencies, call: AdminRequest[LiveSourceAccept, NoQuery]
) -> AdminResponse:
    """Accept held definitions, so that clients see them."""
    wanted = Acceptance(names=call.body.names, digests=call.body.digests)
    accept = partial(accept_changes, call.tenant, admin.catalog, call.path["name"], wanted)
    return await _NOUN.respond(admin, call, await accept(by=call.by, expected=call.expected))


async def reattach_live_source(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Reattach a live source now, before the next scheduled attempt."""
    return await _NOUN.respond(admin, call, await reattach(call.tenant, admin.catalog, call.path["name"]))


async def list_live_source_primitives(
    admin: AdminDependencies, call: AdminRequest[NoBody, LivePrimitiveListQuery]
) -> AdminResponse:
    """List the primitives of a live source: visible, held, hidden and absent ones."""
    source = await LIVE_SOURCES.get(call.tenant, admin.catalog, call.path["name"])
    read = partial(page_live_primitives, call.tenant, admin.catalog, source)
    rules = replace(LIVE_PRIMITIVES, name=f"{LIVE_PRIMITIVES.name}:{source.id}")
    found, cursor = await read_list(admin.cursors, call.tenant, rules, call.query, read=read)
    items = [LivePrimitiveShown.of(one, source) for one in found]
    return AdminResponse(content=LivePrimitivePage(items=items, next_cursor=cursor))


ENDPOINTS = (
    endpoint(
        "POST",
        f"{_NOUN.item}/accept",
        accept_live_definitions,
        LiveSourceAccept,
        query=NoQuery,
        responses={200: _NOUN.shown},
        problems={409, 422},
        has_tag=True,
    ),
    _NOUN.action_route("reattach", reattach_live_source, work=WorkKind.OUTBOUND),
    endpoint(
        "GET",
        f"{_NOUN.item}/primitives",
        list_live_source_primitives,
        NoBody,
        query=LivePrimitiveListQuery,
        responses={200: LivePrimitivePage},
    ),
)
