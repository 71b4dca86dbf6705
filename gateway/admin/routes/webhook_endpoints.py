"""Endpoints of the deliveries of outbound webhook endpoints."""

from dataclasses import replace
from functools import partial

from gateway.admin.crud import endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.list_search import WEBHOOK_DELIVERIES
from gateway.admin.pagination import read_list
from gateway.admin.requests.lists import WebhookDeliveryListQuery
from gateway.admin.responses.webhook_endpoints import (
    WebhookDeliveryListed,
    WebhookDeliveryShown,
    show_delivery,
)
from gateway.catalog.notifications import deliveries
from gateway.web.kinds.annotations import page_model
from gateway.web.models import NoBody, NoQuery

_ITEM = "/tenants/{t}/webhook-endpoints/{name}"
_DELIVERIES = f"{_ITEM}/deliveries"
_PAGE = page_model("WebhookDeliveryPage", WebhookDeliveryListed, "One page of the deliveries of an endpoint.")


async def test_webhook_endpoint(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Send an event of the kind `webhook_endpoint.test` to an endpoint; its delivery shows the outcome."""
    made = await deliveries.test_endpoint(call.tenant, admin.catalog, call.path["name"], by=call.by)
    return AdminResponse(status=202, content=show_delivery(made))


async def list_webhook_deliveries(
    admin: AdminDependencies, call: AdminRequest[NoBody, WebhookDeliveryListQuery]
) -> AdminResponse:
    """List the deliveries of an endpoint without their payloads; ended deliveries are kept for seven days."""
    read = partial(deliveries.page_deliveries, call.tenant, admin.catalog, call.path["name"])
    listing = replace(WEBHOOK_DELIVERIES, name=f"{WEBHOOK_DELIVERIES.name}/{call.path['name']}")
    shown, cursor = await read_list(admin.cursors, call.tenant, listing, call.query, read=read)
    items = [WebhookDeliveryListed.of(one) for one in shown]
    return AdminResponse(content=_PAGE(items=items, next_cursor=cursor))


async def get_webhook_delivery(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show a delivery of an endpoint, with its payload."""
    find = partial(deliveries.get_delivery, call.tenant, admin.catalog)
    return AdminResponse(content=show_delivery(await find(call.path["name"], call.path["id"])))


async def replay_webhook_delivery(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Send a delivery again under its own id, at once and for another 24 hours."""
    replay = partial(deliveries.replay_delivery, call.tenant, admin.catalog)
    again = await replay(call.path["name"], call.path["id"], by=call.by)
    return AdminResponse(status=202, content=show_delivery(again))


ENDPOINTS = (
    endpoint(
        "POST",
        f"{_ITEM}/test",
        test_webhook_endpoint,
        NoBody,
        query=NoQuery,
        responses={202: WebhookDeliveryShown},
        problems={409, 429},
    ),
    endpoint(
        "GET", _DELIVERIES, list_webhook_deliveries, NoBody, query=WebhookDeliveryListQuery, responses={200: _PAGE}
    ),
    endpoint(
        "GET",
        f"{_DELIVERIES}/{{id}}",
        get_webhook_delivery,
        NoBody,
        query=NoQuery,
        responses={200: WebhookDeliveryShown},
    ),
    endpoint(
        "POST",
        f"{_DELIVERIES}/{{id}}/replay",
        replay_webhook_delivery,
        NoBody,
        query=NoQuery,
        responses={202: WebhookDeliveryShown},
        problems={409},
    ),
)
