"""Log context of a request: its correlation id, and its tenant and principal once they are known."""

from collections.abc import MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class LogContext:
    """The labels of one request. The HTTP layer sets the correlation id; authentication adds tenant and principal."""

    correlation_id: str
    tenant: str | None = None
    principal: str | None = None


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
