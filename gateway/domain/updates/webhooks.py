"""Incoming webhooks without their secrets, and the secrets that sign deliveries."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from gateway.domain.identifiers import WebhookId
from gateway.domain.members.markers import About, JsonFormat, Shape, StoredAs
from gateway.domain.members.secret import SecretStatus
from gateway.domain.tenancy.recorded_fields import Omitted


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookStatus(SecretStatus):
    """The place of a webhook, and the expiry of the secret before the last rotation."""

    path: Annotated[
        Omitted[str],
        JsonFormat("uri-reference"),
        About("The path to which deliveries are sent, relative to the gateway's URL."),
        Shape.LISTED,
    ] = ""
    old_secret_until: Annotated[
        datetime | None,
        About("The time until which the previous secret is valid; null if there is none."),
        StoredAs("retires_at"),
        Shape.LISTED,
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An address at which a tenant's systems report changed resources."""

    id: WebhookId
    name: str
    version: int = 1
    created_at: datetime
    updated_at: datetime
    status: WebhookStatus = WebhookStatus()


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningSecrets:
    """Secrets (`whsec_…`) that sign deliveries: the newest one, and the one before it until it expires."""

    current: str = field(repr=False)
    previous: str | None = field(default=None, repr=False)
