"""Webhooks into the gateway as they may be shown, and the secrets that sign what comes through them."""

from dataclasses import dataclass, field
from datetime import datetime

from gateway.domain.identifiers import WebhookId


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """One place where a tenant's systems say that resources have changed.

    `retires_at` is when the secret before the last rotation ends; None when there is none.
    """

    id: WebhookId
    name: str
    version: int
    retires_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningSecrets:
    """What deliveries are signed with (`whsec_…`): the newest secret, and the one before it while it is still good."""

    current: str = field(repr=False)
    previous: str | None = field(default=None, repr=False)
