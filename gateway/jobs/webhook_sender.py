"""Attempts of outbound webhooks: a signed POST through the guarded upstream client, limited in time and response size.

One job sends the due deliveries of one endpoint, one after the other; the first failure ends the batch. A redirect is a
failure. The scheduler gives each tenant a share of its slots, so that slow endpoints of one tenant do not delay others.
"""

import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import anyio
import structlog

from gateway.catalog.notifications.deliveries import (
    AttemptOutcome,
    LeasedDeliveries,
    lease_deliveries,
    record_outcome,
    release_deliveries,
)
from gateway.catalog.transaction import CatalogContext
from gateway.catalog.updates.signatures import sign
from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.updates.webhook_endpoints import DeliveryState, OutboundDelivery
from gateway.domain.updates.webhooks import SigningSecrets
from gateway.errors import UpstreamError
from gateway.jobs.limits import ATTEMPT_S, DRAIN_S, MAX_RECEIVER_BYTES
from gateway.store.jobs import Job
from gateway.telemetry.metrics import Metrics
from gateway.upstream.auth.credentials import digest_of
from gateway.upstream.client import UpstreamClient

log = structlog.get_logger(__name__)

_OK, _REDIRECTS, _ERRORS = 200, 300, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSender:
    """Sends the deliveries that are due."""

    catalog: CatalogContext
    upstream: UpstreamClient
    metrics: Metrics

    async def perform(self, due: Job) -> None:
        """Send a batch of due deliveries of one endpoint, unless another replica does.

        Raises:
            Unavailable: PostgreSQL or Redis is unavailable; the deliveries are repeated when their lease expires.
        """
        leased = await lease_deliveries(self.catalog, due)
        if leased is None:
            return
        for position, delivery in enumerate(leased.items):
            lag = self.metrics.webhook_lag.parts["later" if delivery.attempts else "first"]
            lag.observe((datetime.now(UTC) - delivery.due_at).total_seconds())
            outcome = await self._attempt(leased, delivery)
            state = await record_outcome(self.catalog, leased, delivery, outcome)
            self.metrics.webhook_attempts.add("retried" if state is DeliveryState.PENDING else state.value)
            if outcome.error is not None:
                log.info("webhook_attempt_failed", tenant_id=leased.tenant, delivery=delivery.id, status=outcome.status)
                await release_deliveries(self.catalog, leased, leased.items[position + 1 :])
                return

    async def _attempt(self, leased: LeasedDeliveries, delivery: OutboundDelivery) -> AttemptOutcome:
        if leased.signing is None or leased.refusal is not None:
            return AttemptOutcome(error=leased.refusal or "the endpoint was removed")
        request = make_delivery_request(leased.endpoint.url, delivery, leased.signing, at=int(time.time()))
        try:
            with anyio.fail_after(ATTEMPT_S):
                return await self._send(leased, request)
        except TimeoutError:
            return AttemptOutcome(error=f"the endpoint did not respond within {ATTEMPT_S:g} seconds")
        except UpstreamError as error:
            return AttemptOutcome(error=error.message)

    async def _send(self, leased: LeasedDeliveries, request: UpstreamRequest) -> AttemptOutcome:
        # guard: egress-tenant-of-each-webhook
        response = await self.upstream.open_response(request, tenant=leased.tenant, limit_bytes=MAX_RECEIVER_BYTES)
        with response:
            with suppress(UpstreamError), anyio.move_on_after(DRAIN_S):
                await response.read_whole()  # an unread response would reset the receiver's connection
            if _OK <= response.status < _REDIRECTS:
                return AttemptOutcome(status=response.status)
            hint = "; redirects are not followed" if _REDIRECTS <= response.status < _ERRORS else ""
            return AttemptOutcome(
                status=response.status, error=f"the endpoint responded with status {response.status}{hint}"
            )


def make_delivery_request(url: str, delivery: OutboundDelivery, signing: SigningSecrets, *, at: int) -> UpstreamRequest:
    """The signed request of an attempt (Standard Webhooks), with the id of the delivery and the time of the attempt.

    Endpoints have their own connections.
    """
    secrets = [secret for secret in (signing.current, signing.previous) if secret is not None]
    signatures = [sign(secret, delivery=delivery.id, at=str(at), body=delivery.payload) for secret in secrets]
    headers = (
        ("Content-Type", "application/json"),
        ("webhook-id", delivery.id),
        ("webhook-timestamp", str(at)),
        ("webhook-signature", " ".join(signatures)),
    )
    return UpstreamRequest(
        method="POST", url=url, headers=headers, body=delivery.payload, credential=digest_of([delivery.endpoint])
    )
