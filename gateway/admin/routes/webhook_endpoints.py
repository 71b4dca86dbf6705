"""Endpoints of outbound webhook endpoints and their deliveries. Only creation and rotation show a secret."""

from dataclasses import replace
from functools import partial

from gateway.admin.crud import Noun, each, endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.list_search import WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from gateway.admin.pagination import read_list
from gateway.admin.requests.lists import WebhookDeliveryListQuery, WebhookEndpointListQuery
from gateway.admin.requests.webhook_endpoints import WebhookEndpointCreate, WebhookEndpointUpdate
from gateway.admin.responses.webhook_endpoints import (
    WebhookDeliveryListed,
    WebhookDeliveryPage,
    WebhookDeliveryShown,
    WebhookEndpointMinted,
    WebhookEndpointPage,
    WebhookEndpointShown,
)
from gateway.catalog.etags import tag_of
from gateway.catalog.notifications import deliveries, webhook_endpoints
from gateway.catalog.notifications.webhook_endpoints import EndpointDraft
from gateway.domain.updates.webhook_endpoints import OutboundWebhook
from gateway.web.models import NoBody, NoQuery

_NOUN: Noun[OutboundWebhook] = Noun(
    singular="webhook_endpoint",
    path="/tenants/{t}/webhook-endpoints",
    key="name",
    shown=WebhookEndpointShown,
    show=each(WebhookEndpointShown.of),
)
_DELIVERIES = f"{_NOUN.item}/deliveries"


async def create_webhook_endpoint(
    admin: AdminDependencies, call: AdminRequest[WebhookEndpointCreate, NoQuery]
) -> AdminResponse:
    """Create an endpoint to which signed events are sent; its secret is shown only once."""
    body = call.body
    draft = EndpointDraft(
        name=body.name,
        url=body.url,
        kinds=tuple(body.kinds),
        description=body.description,
        enabled=body.enabled,
    )
    made, secret = await webhook_endpoints.create_endpoint(call.tenant, admin.catalog, draft, by=call.by)
    return _NOUN.to_created(call, made, _minted(made, secret))


async def update_webhook_endpoint(
    admin: AdminDependencies, call: AdminRequest[WebhookEndpointUpdate, NoQuery]
) -> AdminResponse:
    """Change, enable or disable an endpoint."""

    def revise(draft: EndpointDraft) -> EndpointDraft:
        changed = replace(draft, **call.body.sent())
        return replace(changed, kinds=tuple(changed.kinds))

    update = partial(webhook_endpoints.update_endpoint, call.tenant, admin.catalog, call.path["name"], revise)
    return await _NOUN.respond(admin, call, await update(by=call.by, expected=call.expected))


async def rotate_webhook_endpoint(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Rotate the secret of an endpoint; only this response contains the new one. For a day, deliveries are signed with
    both.
    """
    rotate = partial(webhook_endpoints.rotate_endpoint, call.tenant, admin.catalog, call.path["name"])
    return _minted(*await rotate(by=call.by, expected=call.expected))


async def test_webhook_endpoint(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Send an event of the kind `webhook_endpoint.test` to an endpoint; its delivery shows the outcome."""
    made = await deliveries.test_endpoint(call.tenant, admin.catalog, call.path["name"], by=call.by)
    return AdminResponse(status=202, content=WebhookDeliveryShown.of(made))


async def list_webhook_deliveries(
    admin: AdminDependencies, call: AdminRequest[NoBody, WebhookDeliveryListQuery]
) -> AdminResponse:
    """List the deliveries of an endpoint without their payloads; ended deliveries are kept for seven days."""
    read = partial(deliveries.page_deliveries, call.tenant, admin.catalog, call.path["name"])
    listing = replace(WEBHOOK_DELIVERIES, name=f"{WEBHOOK_DELIVERIES.name}/{call.path['name']}")
    shown, cursor = await read_list(admin.cursors, call.tenant, listing, call.query, read=read)
    items = [WebhookDeliveryListed.of(one) for one in shown]
    return AdminResponse(content=WebhookDeliveryPage(items=items, next_cursor=cursor))


async def get_webhook_delivery(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show a delivery of an endpoint, with its payload."""
    find = partial(deliveries.get_delivery, call.tenant, admin.catalog)
    return AdminResponse(content=WebhookDeliveryShown.of(await find(call.path["name"], call.path["id"])))


async def replay_webhook_delivery(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Send a delivery again under its own id, at once and for another 24 hours."""
    replay = partial(deliveries.replay_delivery, call.tenant, admin.catalog)
    again = await replay(call.path["name"], call.path["id"], by=call.by)
    return AdminResponse(status=202, content=WebhookDeliveryShown.of(again))


def _minted(made: OutboundWebhook, secret: str) -> AdminResponse:
    return AdminResponse(content=WebhookEndpointMinted.with_secret(made, secret), tag=tag_of(made))


ENDPOINTS = (
    _NOUN.list_route(
        "List the tenant's outbound webhook endpoints, without their secrets.",
        webhook_endpoints.page_endpoints,
        WEBHOOK_ENDPOINTS,
        WebhookEndpointListQuery,
        WebhookEndpointPage,
    ),
    _NOUN.create_route(
        create_webhook_endpoint, WebhookEndpointCreate, responses={201: WebhookEndpointMinted}, problems={409, 422, 429}
    ),
    _NOUN.show_route("Show an outbound webhook endpoint, without its secret.", webhook_endpoints.get_endpoint),
    _NOUN.update_route(update_webhook_endpoint, WebhookEndpointUpdate, problems={409, 422}),
    _NOUN.action_route("rotate", rotate_webhook_endpoint, responses={200: WebhookEndpointMinted}),
    endpoint(
        "POST",
        f"{_NOUN.item}/test",
        test_webhook_endpoint,
        NoBody,
        NoQuery,
        {202: WebhookDeliveryShown},
        problems={409, 429},
    ),
    endpoint("GET", _DELIVERIES, list_webhook_deliveries, NoBody, WebhookDeliveryListQuery, {200: WebhookDeliveryPage}),
    endpoint("GET", f"{_DELIVERIES}/{{id}}", get_webhook_delivery, NoBody, NoQuery, {200: WebhookDeliveryShown}),
    endpoint(
        "POST",
        f"{_DELIVERIES}/{{id}}/replay",
        replay_webhook_delivery,
        NoBody,
        NoQuery,
        {202: WebhookDeliveryShown},
        problems={409},
    ),
    _NOUN.delete_route("Delete an outbound webhook endpoint with its deliveries.", webhook_endpoints.remove_endpoint),
)
