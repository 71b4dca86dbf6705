"""Sinks: external systems that receive every entry of a tenant's audit trail."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from gateway.domain.identifiers import AuditSinkId
from gateway.domain.members.markers import About, Length, Option, Setter, Shape
from gateway.domain.members.values import CredentialName
from gateway.domain.tenancy.recorded_fields import Omitted


class SinkKind(StrEnum):
    """Kind of a sink."""

    HTTPS = "https"
    """Signed POST requests with lines of JSON."""
    SYSLOG = "syslog"
    """RFC 5424 messages over TCP or TLS."""
    FILE = "file"
    """A file in the folder that the operator set; only the operator declares it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkStatus:
    """The progress of a sink."""

    delivered: Annotated[int, About("The number of delivered entries."), Shape.LISTED] = 0
    delivered_at: Annotated[datetime | None, About("The time of the last delivery; null: none yet."), Shape.LISTED] = (
        None
    )
    failures: Annotated[int, About("The number of consecutive failures."), Shape.LISTED, Shape.RESET] = 0
    fault: Annotated[
        str | None, About("The reason of the last failure; null if it succeeded."), Shape.LISTED, Shape.RESET
    ] = None
    waiting_since: Annotated[
        datetime | None, About("The time of the oldest entry that was not delivered; null if all were.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailSink:
    """An external system that receives every entry of the tenant's audit trail at least once."""

    id: AuditSinkId
    name: str
    kind: Annotated[
        SinkKind,
        About("The protocol: `https`, `syslog`, or `file`, which is for the operator only."),
        Setter.CREATION,
        Option(is_argument=True),
        Shape.LISTED,
    ]
    target: Annotated[
        str,
        Length(least=1, most=2048),
        About(
            "An https URL; `tcp://host:port` or `tls://host:port` for syslog, which the egress list must name; or the"
            " name of a file in the operator's folder."
        ),
        Option(is_argument=True),
        Shape.LISTED,
    ]
    credential: Annotated[
        CredentialName | None, About("The name of a stored credential to send, for `https` only; null sends none.")
    ] = None
    enabled: Annotated[bool, About("False pauses delivery."), Shape.LISTED] = True
    whole: Annotated[
        Omitted[bool], About("True delivers the whole trail; false the entries from now on."), Setter.ONCE
    ] = False
    version: int = 1
    created_at: datetime
    updated_at: datetime
    status: Omitted[SinkStatus] = SinkStatus()
