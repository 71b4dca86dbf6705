"""Watches: resources whose URL the gateway polls for changes."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from gateway.domain.identifiers import WatchId
from gateway.domain.members.markers import About, Bounds, Option, Setter, Shape
from gateway.domain.members.values import CredentialName, Uri, Url
from gateway.domain.tenancy.recorded_fields import Omitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """State of the URL at the last successful poll, and the outcome of the latest polls.

    `digest` is the digest of the last complete body.
    """

    etag: str | None = None
    last_modified: str | None = None
    digest: bytes | None = field(default=None, repr=False)
    checked_at: Annotated[datetime | None, About("The time of the last poll."), Shape.LISTED] = None
    changed_at: Annotated[
        datetime | None, About("The time at which the current content was first seen."), Shape.LISTED
    ] = None
    failures: Annotated[
        int,
        About("The number of consecutive failed polls; each one lengthens the interval, up to a limit."),
        Shape.RESET,
    ] = 0
    fault: Annotated[
        str | None,
        About("The reason why the last poll failed; null if it succeeded."),
        Shape.LISTED,
        Shape.RESET,
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Polling of a URL at an interval. A different body means that the resource at `uri` has changed."""

    id: WatchId
    uri: Annotated[
        Uri,
        About("The URI of a resource, or one that matches a resource template."),
        Setter.CREATION,
        Option(is_argument=True),
        Shape.LISTED,
    ]
    url: Annotated[Url, About("The URL to poll with GET."), Option(name="look-at", is_argument=True), Shape.LISTED]
    interval_s: Annotated[
        int,
        Bounds(least=5, most=86_400),
        About("The time between two polls in seconds, varied by up to 10 %."),
        Shape.DURATION,
        Shape.LISTED,
    ] = 60
    credential: Annotated[CredentialName | None, About("The name of a stored credential to send; null sends none.")] = (
        None
    )
    version: int = 1
    created_at: datetime
    updated_at: datetime
    status: Omitted[Sighting] = Sighting()
