"""Endpoints of webhooks: create, rotate, list, show and delete. Only creation and rotation show a secret."""

from functools import partial
from urllib.parse import quote

from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Endpoint, Plain
from gateway.admin.listings import WEBHOOKS
from gateway.admin.pagination import read_list
from gateway.admin.requests.lists import WebhookListQuery
from gateway.admin.requests.models import NoBody, NoQuery
from gateway.admin.requests.updates import WebhookCreate
from gateway.admin.responses.updates import WebhookMinted, WebhookPage, WebhookShown
from gateway.catalog.etags import tag_of
from gateway.catalog.tenants import get_tenant
from gateway.catalog.updates import webhooks


async def list_webhooks(admin: AdminDependencies, call: AdminRequest[NoBody, WebhookListQuery]) -> AdminResponse:
    """List the tenant's webhooks, by default by name."""
    slug = await _slug(admin, call)
    read = partial(webhooks.page_webhooks, call.tenant, admin.catalog)
    shown, cursor = await read_list(admin.cursors, call.tenant, WEBHOOKS, call.query, read=read)
    return AdminResponse(content=WebhookPage(items=[WebhookShown.of(one, slug) for one in shown], next_cursor=cursor))


async def create_webhook(admin: AdminDependencies, call: AdminRequest[WebhookCreate, NoQuery]) -> AdminResponse:
    """Create a webhook; the response contains its secret."""
    slug = await _slug(admin, call)
    made, secret = await webhooks.create_webhook(call.tenant, admin.catalog, call.body.name, by=call.by)
    location = f"/tenants/{quote(call.path['t'])}/webhooks/{quote(made.name)}"
    return AdminResponse(
        status=201, content=WebhookMinted.with_secret(made, slug, secret), tag=tag_of(made), location=location
    )


async def get_webhook(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show a webhook."""
    found = await webhooks.get_webhook(call.tenant, admin.catalog, call.path["name"])
    return AdminResponse(content=WebhookShown.of(found, await _slug(admin, call)), tag=tag_of(found))


async def rotate_webhook(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Rotate a webhook: give it a new secret, which the response contains."""
    slug = await _slug(admin, call)
    rotate = partial(webhooks.rotate_webhook, call.tenant, admin.catalog, call.path["name"])
    rotated, secret = await rotate(by=call.by, expected=call.expected)
    return AdminResponse(content=WebhookMinted.with_secret(rotated, slug, secret), tag=tag_of(rotated))


async def delete_webhook(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Delete a webhook."""
    remove = partial(webhooks.remove_webhook, call.tenant, admin.catalog, call.path["name"])
    await remove(by=call.by, expected=call.expected)
    return AdminResponse(status=204)


async def _slug(
    admin: AdminDependencies,
    call: Plain | AdminRequest[NoBody, WebhookListQuery] | AdminRequest[WebhookCreate, NoQuery],
) -> str:
    return (await get_tenant(call.tenant, admin.catalog)).slug


_LIST = "/tenants/{t}/webhooks"
_ONE = "/tenants/{t}/webhooks/{name}"

ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_LIST,
        summary="List the tenant's webhooks, without their secrets.",
        handle=list_webhooks,
        body=NoBody,
        query=WebhookListQuery,
        answers={200: WebhookPage},
    ),
    Endpoint(
        method="POST",
        path=_LIST,
        summary="Create a webhook by which a system reports changed resources; its secret is shown only once.",
        handle=create_webhook,
        body=WebhookCreate,
        query=NoQuery,
        answers={201: WebhookMinted},
        problems=frozenset({409, 429}),
        has_tag=True,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        summary="Show a webhook, without its secret.",
        handle=get_webhook,
        body=NoBody,
        query=NoQuery,
        answers={200: WebhookShown},
        has_tag=True,
    ),
    Endpoint(
        method="POST",
        path=f"{_ONE}/rotate",
        summary="Give a webhook a new secret, shown this once; the one before it stays good for a day.",
        handle=rotate_webhook,
        body=NoBody,
        query=NoQuery,
        answers={200: WebhookMinted},
        has_tag=True,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        summary="Take nothing through a webhook any more.",
        handle=delete_webhook,
        body=NoBody,
        query=NoQuery,
        answers={204: None},
        has_tag=True,
    ),
)
