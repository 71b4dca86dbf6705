"""Facts of the current request for log lines and audit entries: its correlation id, its client, its caller."""

from collections.abc import MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

from gateway.telemetry.limits import MAX_CLIENT_NAME_LENGTH

CLAIMED_CLIENT = "claimed_client"
"""Member of an entry's detail: the name that the client gives itself, which nothing proves."""


@dataclass(slots=True)
class LogContext:
    """The labels of one request. The HTTP layer sets the correlation id and the client's address; authentication adds
    tenant and principal, and the protocol the name that the client gives itself.
    """

    correlation_id: str
    tenant: str | None = None
    principal: str | None = None
    address: str | None = None
    client: str | None = None


LABELS: ContextVar[LogContext | None] = ContextVar("gateway_labels", default=None)


def add_labels(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor: adds the labels of the current request to a log line, unless the line already has them."""
    labels = LABELS.get()
    if labels is not None:
        event.setdefault("correlation_id", labels.correlation_id)
        if labels.tenant is not None:
            event.setdefault("tenant", labels.tenant)
        if labels.principal is not None:
            event.setdefault("principal", labels.principal)
    return event


def name_client(given: object) -> None:
    """Add the name in a client's `Implementation` object to the labels; it is only the client's word."""
    labels = LABELS.get()
    if labels is not None and isinstance(given, dict):
        name = cast("dict[str, object]", given).get("name")
        if isinstance(name, str) and (text := name[:MAX_CLIENT_NAME_LENGTH]).isprintable():
            labels.client = text


def describe_sender(detail: dict[str, object]) -> None:
    """Add the client's address and claimed name to the detail of an audit entry, as far as they are known."""
    labels = LABELS.get()
    if labels is not None:
        if labels.client is not None:
            detail[CLAIMED_CLIENT] = labels.client
        if labels.address is not None:
            detail["address"] = labels.address
