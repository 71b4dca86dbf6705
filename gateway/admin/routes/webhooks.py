"""Endpoints of webhooks: create, rotate, list, show and delete. Only creation and rotation show a secret."""

from collections.abc import Sequence
from functools import partial

from gateway.admin.crud import Noun
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.list_search import WEBHOOKS
from gateway.admin.requests.lists import WebhookListQuery
from gateway.admin.requests.updates import WebhookCreate
from gateway.admin.responses.updates import WebhookMinted, WebhookPage, WebhookShown
from gateway.catalog.etags import tag_of
from gateway.catalog.tenants import get_tenant
from gateway.catalog.updates import webhooks
from gateway.domain.identifiers import TenantId
from gateway.domain.updates.webhooks import Webhook
from gateway.web.models import NoQuery


async def create_webhook(admin: AdminDependencies, call: AdminRequest[WebhookCreate, NoQuery]) -> AdminResponse:
    """Create a webhook, through which a system reports changed resources; its secret is shown only once."""
    slug = await _slug(admin, call.tenant)
    made, secret = await webhooks.create_webhook(call.tenant, admin.catalog, call.body.name, by=call.by)
    return _NOUN.to_created(call, made, _minted(slug, made, secret))


async def rotate_webhook(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Rotate the secret of a webhook; only this response contains the new one. The previous secret stays valid for a
    day.
    """
    slug = await _slug(admin, call.tenant)
    rotate = partial(webhooks.rotate_webhook, call.tenant, admin.catalog, call.path["name"])
    return _minted(slug, *await rotate(by=call.by, expected=call.expected))


def _minted(slug: str, webhook: Webhook, secret: str) -> AdminResponse:
    return AdminResponse(content=WebhookMinted.with_secret(webhook, slug, secret), tag=tag_of(webhook))


async def _show(admin: AdminDependencies, tenant: TenantId, found: Sequence[Webhook]) -> Sequence[WebhookShown]:
    slug = await _slug(admin, tenant)
    return [WebhookShown.of(one, slug) for one in found]


async def _slug(admin: AdminDependencies, tenant: TenantId) -> str:
    return (await get_tenant(tenant, admin.catalog)).slug


_NOUN = Noun(singular="webhook", path="/tenants/{t}/webhooks", key="name", shown=WebhookShown, show=_show)

ENDPOINTS = (
    _NOUN.list_route(
        "List the tenant's webhooks, without their secrets.",
        webhooks.page_webhooks,
        WEBHOOKS,
        WebhookListQuery,
        WebhookPage,
    ),
    _NOUN.create_route(create_webhook, WebhookCreate, responses={201: WebhookMinted}, problems={409, 429}),
    _NOUN.show_route("Show a webhook, without its secret.", webhooks.get_webhook),
    _NOUN.action_route("rotate", rotate_webhook, responses={200: WebhookMinted}),
    _NOUN.delete_route("Delete a webhook; further deliveries are refused.", webhooks.remove_webhook),
)
