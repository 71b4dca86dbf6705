"""Webhook endpoint `/t/{tenant}/hooks/{id}`: receives a tenant's signed notifications of changed resources.

A body is parsed only after its signature is verified. Limits before the verification: body size, receive time, and the
number of concurrent verifications.
"""

from collections.abc import Mapping
from typing import cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gateway.calls.invocation import Limiter
from gateway.catalog.ceilings import limits_of
from gateway.catalog.transaction import CatalogContext
from gateway.catalog.updates.webhooks import (
    Delivery,
    ReportedChanges,
    SingleUse,
    check_delivery,
    take_delivery,
    verify_delivery,
)
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import KeyId
from gateway.domain.json_text import load_json
from gateway.errors import Fault, GatewayError, InvalidBody
from gateway.web.bodies import declared_length, read_body
from gateway.web.limits import (
    MAX_CHANGED_URI_LENGTH,
    MAX_CHANGES,
    MAX_VERIFICATION_QUEUE,
    MAX_WEBHOOK_BYTES,
    WEBHOOK_BODY_S,
)
from gateway.web.problems import MEDIA_TYPE, correlation_id_of, problem, problem_bytes

_SOURCES = ("source", "sources")
_CONCURRENT_VERIFICATIONS = 8


class WebhookReceiver:
    """The ASGI endpoint of all webhooks."""

    def __init__(self, catalog: CatalogContext, limiter: Limiter, delivery_ids: SingleUse) -> None:
        self._catalog = catalog
        self._limiter = limiter
        self._delivery_ids = delivery_ids
        self.slot_pool = FairSlotPool(
            "webhook verifications", slots=_CONCURRENT_VERIFICATIONS, queue=MAX_VERIFICATION_QUEUE
        )
        """Keyed by the slug in the path, because the tenant is verified only by the signature."""

    @property
    def route(self) -> Route:
        """The route of the endpoint."""
        return Route("/t/{tenant}/hooks/{webhook}", self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Receive one delivery."""
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except GatewayError as error:
            response = problem(error, correlation_id=correlation_id_of(scope))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.method != "POST":
            correlation_id = correlation_id_of(request.scope)
            content = problem_bytes(405, "http.method_not_allowed", "method not allowed; use POST", correlation_id)
            return Response(content, 405, headers={"allow": "POST"}, media_type=MEDIA_TYPE)
        slug, webhook = request.path_params["tenant"], request.path_params["webhook"]
        declared = declared_length(request.scope)
        body = await read_body(request.receive, limit=MAX_WEBHOOK_BYTES, deadline=WEBHOOK_BODY_S, declared=declared)
        delivery = _delivery(request.headers, body)
        check_delivery(delivery)
        async with self.slot_pool.hold(slug):
            tenant = await verify_delivery(slug, self._catalog, webhook, delivery)
        limits = await limits_of(tenant, self._catalog)
        async with self._limiter.admit(tenant, KeyId(webhook), limits):
            changed, used = read_changes(body), self._delivery_ids
            await take_delivery(tenant, self._catalog, webhook, delivery, changed=changed, delivery_ids=used)
        return Response(status_code=202, headers={"cache-control": "no-store"})


def read_changes(body: bytes) -> ReportedChanges:
    """Return the resources (`uri`, `uris`) or the sources (`source`, `sources`) of a delivery.

    Other members are ignored. With a URI, `source` is ignored as well, because formats such as CloudEvents use it for
    the sender.

    Raises:
        InvalidBody: the body is not a JSON object with one of these members, or has more than 100 values. Or a value
            is empty, not printable, or longer than 2,048 characters.
    """
    content = load_json(body)
    if not isinstance(content, dict):
        raise _broken("", "must be an object with either uri or uris")
    members = cast("Mapping[str, object]", content)
    if members.get("uri") is None and members.get("uris") is None and not members.keys().isdisjoint(_SOURCES):
        return ReportedChanges(sources=_read_texts(members, *_SOURCES))
    return ReportedChanges(uris=_read_texts(members, "uri", "uris"))


def _read_texts(members: Mapping[str, object], singular: str, plural: str) -> Mapping[str, str]:
    one, several = members.get(singular), members.get(plural)
    if (one is None) == (several is None):
        raise _broken("", f"must be an object with either {singular} or {plural}")
    if several is None:
        return {f"/{singular}": _text(one, f"/{singular}")}
    if not isinstance(several, list) or not several:
        raise _broken(f"/{plural}", "must be a list with at least one string")
    texts = cast("list[object]", several)
    if len(texts) > MAX_CHANGES:
        raise _broken(f"/{plural}", f"must have at most {MAX_CHANGES} strings")
    return {(pointer := f"/{plural}/{index}"): _text(text, pointer) for index, text in enumerate(texts)}


def _text(value: object, pointer: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_CHANGED_URI_LENGTH or not value.isprintable():
        raise _broken(pointer, f"must be a string of at most {MAX_CHANGED_URI_LENGTH} characters")
    return value


def _delivery(headers: Mapping[str, str], body: bytes) -> Delivery:
    return Delivery(
        id=headers.get("webhook-id", ""),
        at=headers.get("webhook-timestamp", ""),
        signatures=headers.get("webhook-signature", ""),
        body=body,
    )


def _broken(pointer: str, reason: str) -> InvalidBody:
    return InvalidBody(f"{pointer or 'the body'}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])
