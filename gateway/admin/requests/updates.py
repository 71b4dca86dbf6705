"""Request models of webhooks."""

from typing import Annotated

from pydantic import Field

from gateway.web.models import BodyModel

WebhookName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Unique in the tenant.")]


class WebhookCreate(BodyModel):
    """A webhook, by which a system of the tenant reports changed resources."""

    name: WebhookName
