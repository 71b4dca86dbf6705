"""Request models of webhooks and watches."""

from typing import Annotated

from pydantic import Field

from gateway.admin.requests.models import Url
from gateway.admin.requests.primitives import CredentialName, Uri
from gateway.web.models import GIVEN, Absent, BodyModel

Interval = Annotated[int, Field(ge=5, le=86_400, description="Seconds between two polls, varied by up to 10 %.")]
WebhookName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Unique in the tenant.")]


class WebhookCreate(BodyModel):
    """A webhook, by which a system of the tenant reports changed resources."""

    name: WebhookName


class WatchCreate(BodyModel):
    """A watch: the gateway polls a URL. When the content at the URL changes, the resource has changed."""

    uri: Annotated[Uri, Field(description="The URI of a resource, or one that matches a resource template.")]
    url: Annotated[Url, Field(description="The URL to poll with GET.")]
    interval_s: Interval = 60
    credential: Annotated[CredentialName | None, Field(description="The name of a stored credential to send.")] = None


class WatchUpdate(BodyModel):
    """Changes of a watch; absent fields keep their value."""

    url: Annotated[Url | Absent, GIVEN, Field(description="The URL to poll.")] = None
    interval_s: Annotated[Interval | Absent, GIVEN] = None
    credential: Annotated[
        CredentialName | None, Field(description="The name of a stored credential to send; null sends none.")
    ] = None
