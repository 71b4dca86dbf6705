"""Endpoints of watches, each of which polls a URL for a resource."""

from dataclasses import replace
from functools import partial
from urllib.parse import quote

from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Endpoint, Plain
from gateway.admin.listings import WATCHES
from gateway.admin.pagination import read_list
from gateway.admin.requests.lists import WatchListQuery
from gateway.admin.requests.models import NoBody, NoQuery
from gateway.admin.requests.updates import WatchCreate, WatchUpdate
from gateway.admin.responses.updates import WatchPage, WatchShown
from gateway.catalog.etags import tag_of
from gateway.catalog.updates import watches
from gateway.catalog.updates.watches import WatchDraft
from gateway.domain.watches import Watch
from gateway.errors import NotFound


async def list_watches(admin: AdminDependencies, call: AdminRequest[NoBody, WatchListQuery]) -> AdminResponse:
    """List the tenant's watches, by default by URI, or only the watch of one resource."""
    if call.query.uri is not None:
        return AdminResponse(content=WatchPage(items=await _of_uri(admin, call, call.query.uri), next_cursor=None))
    read = partial(watches.page_watches, call.tenant, admin.catalog)
    shown, cursor = await read_list(admin.cursors, call.tenant, WATCHES, call.query, read=read)
    return AdminResponse(content=WatchPage(items=[WatchShown.of(one) for one in shown], next_cursor=cursor))


async def create_watch(admin: AdminDependencies, call: AdminRequest[WatchCreate, NoQuery]) -> AdminResponse:
    """Create a watch."""
    body = call.body
    draft = WatchDraft(uri=body.uri, url=body.url, interval_s=body.interval_s, credential=body.credential)
    made = await watches.create_watch(call.tenant, admin.catalog, draft, by=call.by)
    location = f"/tenants/{quote(call.path['t'])}/watches/{made.id}"
    return AdminResponse(status=201, content=WatchShown.of(made), tag=tag_of(made), location=location)


async def get_watch(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show a watch."""
    return _shown(await watches.get_watch(call.tenant, admin.catalog, call.path["id"]))


async def update_watch(admin: AdminDependencies, call: AdminRequest[WatchUpdate, NoQuery]) -> AdminResponse:
    """Change the URL, interval or credential of a watch."""
    body = call.body

    def revise(draft: WatchDraft) -> WatchDraft:
        return replace(
            draft,
            url=draft.url if body.url is None else body.url,
            interval_s=draft.interval_s if body.interval_s is None else body.interval_s,
            credential=body.credential if "credential" in body.model_fields_set else draft.credential,
        )

    update = partial(watches.update_watch, call.tenant, admin.catalog, call.path["id"], revise)
    return _shown(await update(by=call.by, expected=call.expected))


async def delete_watch(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Delete a watch."""
    remove = partial(watches.remove_watch, call.tenant, admin.catalog, call.path["id"])
    await remove(by=call.by, expected=call.expected)
    return AdminResponse(status=204)


async def _of_uri(admin: AdminDependencies, call: AdminRequest[NoBody, WatchListQuery], uri: str) -> list[WatchShown]:
    try:
        found = await watches.get_watch(call.tenant, admin.catalog, uri)
    except NotFound:
        return []
    return [WatchShown.of(found)] if found.uri == uri and WATCHES.matches(found, call.query) else []


def _shown(watch: Watch) -> AdminResponse:
    return AdminResponse(content=WatchShown.of(watch), tag=tag_of(watch))


_LIST = "/tenants/{t}/watches"
_ONE = "/tenants/{t}/watches/{id}"

ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_LIST,
        summary="List the URLs that are looked at for the tenant's resources, and how looking went.",
        handle=list_watches,
        body=NoBody,
        query=WatchListQuery,
        answers={200: WatchPage},
    ),
    Endpoint(
        method="POST",
        path=_LIST,
        summary="Poll a URL; when its content differs, the resource has changed.",
        handle=create_watch,
        body=WatchCreate,
        query=NoQuery,
        answers={201: WatchShown},
        problems=frozenset({409, 422, 429}),
        has_tag=True,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        summary="Show a watch, and how looking went.",
        handle=get_watch,
        body=NoBody,
        query=NoQuery,
        answers={200: WatchShown},
        has_tag=True,
    ),
    Endpoint(
        method="PATCH",
        path=_ONE,
        summary="Look at another URL, at another pace or with another credential.",
        handle=update_watch,
        body=WatchUpdate,
        query=NoQuery,
        answers={200: WatchShown},
        problems=frozenset({422}),
        has_tag=True,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        summary="Look no more.",
        handle=delete_watch,
        body=NoBody,
        query=NoQuery,
        answers={204: None},
        has_tag=True,
    ),
)
