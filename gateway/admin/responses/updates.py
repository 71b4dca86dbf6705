"""Response models of webhooks."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from gateway.admin.fields import CreatedAt, Id, Name, UpdatedAt
from gateway.domain.updates.webhooks import Webhook
from gateway.web.models import Page, ResponseModel


class WebhookShown(ResponseModel):
    """A webhook without its secrets."""

    id: Id
    name: Name
    path: Annotated[str, Field(description="The path to which deliveries are sent, relative to the gateway's URL.")]
    old_secret_until: Annotated[
        datetime | None, Field(description="The time until which the previous secret is valid; null if there is none.")
    ]
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def of(cls, webhook: Webhook, slug: str) -> Self:
        """Build the response from a webhook."""
        return cls(
            id=webhook.id,
            name=webhook.name,
            path=f"/t/{slug}/hooks/{webhook.id}",
            old_secret_until=webhook.retires_at,
            created_at=webhook.created_at,
            updated_at=webhook.updated_at,
        )


class WebhookMinted(WebhookShown):
    """A webhook with its newest secret. Only the responses to creation and rotation contain the secret."""

    secret: Annotated[
        str, Field(description="The secret that signs deliveries (Standard Webhooks); it is returned only once.")
    ]

    @classmethod
    def with_secret(cls, webhook: Webhook, slug: str, secret: str) -> Self:
        """Build the response from a webhook and its new secret."""
        return cls(**WebhookShown.of(webhook, slug).model_dump(), secret=secret)


class WebhookPage(Page[WebhookShown]):
    """One page of a tenant's webhooks."""
