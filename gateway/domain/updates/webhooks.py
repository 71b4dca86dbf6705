"""Incoming webhooks without their secrets, and the secrets that sign deliveries."""

from dataclasses import dataclass, field
from datetime import datetime

from gateway.domain.identifiers import WebhookId


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An endpoint where a tenant's systems report changed resources.

    `retires_at` is the expiry of the secret before the last rotation; None if there is none.
    """

    id: WebhookId
    name: str
    version: int
    retires_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningSecrets:
    """Secrets (`whsec_…`) that sign deliveries: the newest one, and the one before it until it expires."""

    current: str = field(repr=False)
    previous: str | None = field(default=None, repr=False)
