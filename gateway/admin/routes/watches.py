"""Endpoints of watches, each of which polls a URL for a resource."""

from dataclasses import replace
from functools import partial

from gateway.admin.crud import Noun, each, endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.list_search import WATCHES
from gateway.admin.pagination import read_list
from gateway.admin.requests.lists import WatchListQuery
from gateway.admin.requests.updates import WatchCreate, WatchUpdate
from gateway.admin.responses.updates import WatchPage, WatchShown
from gateway.catalog.updates import watches
from gateway.catalog.updates.watches import WatchDraft
from gateway.errors import NotFound
from gateway.web.models import NoBody, NoQuery

_NOUN = Noun(singular="watch", path="/tenants/{t}/watches", key="id", shown=WatchShown, show=each(WatchShown.of))


async def list_watches(admin: AdminDependencies, call: AdminRequest[NoBody, WatchListQuery]) -> AdminResponse:
    """List the watches of the tenant's resources, with the outcome of their polls."""
    if call.query.uri is not None:
        return AdminResponse(content=WatchPage(items=await _of_uri(admin, call, call.query.uri), next_cursor=None))
    read = partial(watches.page_watches, call.tenant, admin.catalog)
    shown, cursor = await read_list(admin.cursors, call.tenant, WATCHES, call.query, read=read)
    return AdminResponse(content=WatchPage(items=[WatchShown.of(one) for one in shown], next_cursor=cursor))


async def create_watch(admin: AdminDependencies, call: AdminRequest[WatchCreate, NoQuery]) -> AdminResponse:
    """Create a watch: poll a URL, and report the resource as changed when the content differs."""
    body = call.body
    draft = WatchDraft(uri=body.uri, url=body.url, interval_s=body.interval_s, credential=body.credential)
    made = await watches.create_watch(call.tenant, admin.catalog, draft, by=call.by)
    return _NOUN.to_created(call, made, await _NOUN.respond(admin, call, made))


async def update_watch(admin: AdminDependencies, call: AdminRequest[WatchUpdate, NoQuery]) -> AdminResponse:
    """Change the URL, the interval or the credential of a watch."""

    def revise(draft: WatchDraft) -> WatchDraft:
        return replace(draft, **call.body.sent())

    update = partial(watches.update_watch, call.tenant, admin.catalog, call.path["id"], revise)
    return await _NOUN.respond(admin, call, await update(by=call.by, expected=call.expected))


async def _of_uri(admin: AdminDependencies, call: AdminRequest[NoBody, WatchListQuery], uri: str) -> list[WatchShown]:
    try:
        found = await watches.get_watch(call.tenant, admin.catalog, uri)
    except NotFound:
        return []
    return [WatchShown.of(found)] if found.uri == uri and WATCHES.matches(found, call.query) else []


ENDPOINTS = (
    endpoint("GET", "/tenants/{t}/watches", list_watches, NoBody, WatchListQuery, {200: WatchPage}),
    _NOUN.create_route(create_watch, WatchCreate, problems={409, 422, 429}),
    _NOUN.show_route("Show a watch with the outcome of its polls.", watches.get_watch),
    _NOUN.update_route(update_watch, WatchUpdate, problems={422}),
    _NOUN.delete_route("Delete a watch.", watches.remove_watch),
)
