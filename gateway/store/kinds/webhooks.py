"""Rows of inbound webhooks and of outbound webhook endpoints, each with its signing secrets."""

from datetime import datetime

from gateway.domain.updates.webhook_endpoints import OutboundWebhook
from gateway.domain.updates.webhooks import SigningSecrets, Webhook
from gateway.kinds.deliveries import WEBHOOK, WEBHOOK_ENDPOINT
from gateway.store.kinds.row_mapper import RowMapper
from gateway.store.kinds.sealed_rows import SealedRows
from gateway.store.notifications.tables import webhook_endpoints
from gateway.store.tables import webhooks


def _webhook_context(webhook: Webhook) -> tuple[str, ...]:
    """Secrets of another webhook or version, or with another expiry, cannot be decrypted."""
    return ("webhook", webhook.id, str(webhook.version), _moment(webhook.status.old_secret_until))


def _endpoint_context(endpoint: OutboundWebhook) -> tuple[str, ...]:
    """Secrets of another endpoint, or with another expiry, cannot be decrypted."""
    return ("webhook endpoint", endpoint.id, _moment(endpoint.status.old_secret_until))


def _moment(until: datetime | None) -> str:
    return "" if until is None else str(round(until.timestamp()))


WEBHOOKS = SealedRows(WEBHOOK, RowMapper(WEBHOOK.of, webhooks), secret=SigningSecrets, context=_webhook_context)
ENDPOINTS = SealedRows(
    WEBHOOK_ENDPOINT,
    RowMapper(WEBHOOK_ENDPOINT.of, webhook_endpoints),
    secret=SigningSecrets,
    context=_endpoint_context,
)
