"""What every log line of a request says of it: its correlation id, and who asked once that is known."""

from collections.abc import MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class LogContext:
    """The labels of one request; whoever finds out more adds it."""

    correlation_id: str
    tenant: str | None = None
    principal: str | None = None


LABELS: ContextVar[LogContext | None] = ContextVar("gateway_labels", default=None)


def add_labels(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog's processor: the labels of the request that is being served, where the line has none of its own."""
    labels = LABELS.get()
    if labels is not None:
        event.setdefault("correlation_id", labels.correlation_id)
        if labels.tenant is not None:
            event.setdefault("tenant", labels.tenant)
        if labels.principal is not None:
            event.setdefault("principal", labels.principal)
    return event
