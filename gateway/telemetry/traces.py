"""Spans of messages and of requests to upstreams: names, statuses and times, never content.

Arguments, results, URIs, paths and queries are not recorded, because they belong to the tenants. Without an exporter,
no `Traces` object exists, and callers only check an attribute for None.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol, Self

import anyio
import structlog
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import default_getter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, get_current_span, use_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gateway.errors import GatewayError
from gateway.telemetry.limits import CLOSE_TIMEOUT_S, MAX_HEADER_LENGTH

log = structlog.get_logger(__name__)

TRACE_HEADERS = ("traceparent", "tracestate")
"""Names of the W3C trace context, as headers and in `_meta`. Baggage is neither read nor sent."""

Attributes = Mapping[str, str | int]

_SCOPE = "gateway"


class SpanProvider(Protocol):
    """The destination of spans, open from its construction to its shutdown."""

    def get_tracer(self, instrumenting_module_name: str, /) -> Tracer:
        """Return a tracer, which creates spans."""
        ...

    def shutdown(self) -> None:
        """Export the pending spans and shut down; blocks."""
        ...


class Traces:
    """Creates spans while it is open.

    `is_joining`: a message continues its client's trace. `is_forwarding`: upstreams receive the gateway's trace
    context.
    """

    def __init__(self, open_provider: Callable[[], SpanProvider], *, is_joining: bool, is_forwarding: bool) -> None:
        self._open_provider = open_provider
        self._is_joining = is_joining
        self._is_forwarding = is_forwarding
        self._provider: SpanProvider | None = None
        self._tracer: Tracer | None = None
        self._format = TraceContextTextMapPropagator()

    async def __aenter__(self) -> Self:
        self._provider = self._open_provider()
        self._tracer = self._provider.get_tracer(_SCOPE)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Export the pending spans, for at most `CLOSE_TIMEOUT_S` seconds."""
        provider, self._provider, self._tracer = self._provider, None, None
        if provider is None:
            return
        loop, closed = asyncio.get_running_loop(), asyncio.Event()

        def close() -> None:
            try:
                provider.shutdown()
            finally:
                with contextlib.suppress(RuntimeError):  # the event loop has closed
                    loop.call_soon_threadsafe(closed.set)

        # a daemon thread, which does not delay the exit of the interpreter
        threading.Thread(target=close, name="traces", daemon=True).start()
        with anyio.move_on_after(CLOSE_TIMEOUT_S, shield=True):
            await closed.wait()
        if not closed.is_set():
            log.warning("spans_lost")

    @contextmanager
    def message_span(self, name: str, attributes: Attributes, carrier: Mapping[str, object]) -> Generator[Span | None]:
        """A span of one message; `carrier` may contain the client's trace context."""
        parent = self._parent(carrier) if self._is_joining else Context()
        with self._span(name, SpanKind.SERVER, attributes, parent) as span:
            yield span

    @contextmanager
    def upstream_span(self, name: str, attributes: Attributes) -> Generator[Span | None]:
        """A span of one request to an upstream, inside the span of its message."""
        with self._span(name, SpanKind.CLIENT, attributes, None) as span:
            yield span

    def headers(self) -> Mapping[str, str]:
        """Return the trace context headers of the current span for an upstream; none unless `is_forwarding`."""
        carrier: dict[str, str] = {}
        if self._is_forwarding:
            self._format.inject(carrier)
        return carrier

    @contextmanager
    def _span(
        self, name: str, kind: SpanKind, attributes: Attributes, parent: Context | None
    ) -> Generator[Span | None]:
        if self._tracer is None:  # closed during the block
            yield None
            return
        span = self._tracer.start_span(name, context=parent, kind=kind, attributes=attributes)
        with use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield span
            except BaseException as error:
                mark_failed(span, error.code if isinstance(error, GatewayError) else type(error).__name__)
                raise

    def _parent(self, carrier: Mapping[str, object]) -> Context:
        """Return the context of the client's span; if it is invalid, an empty context, which begins a trace."""
        usable = {
            name: value
            for name in TRACE_HEADERS
            if isinstance(value := carrier.get(name), str) and len(value) <= MAX_HEADER_LENGTH and value.isascii()
        }
        found = self._format.extract(usable, Context(), default_getter)
        return found if get_current_span(found).get_span_context().is_valid else Context()


def mark_failed(span: Span | None, error_type: str, **attributes: str | int) -> None:
    """Mark the span as failed, with an error code, a status or an exception type, never with the text of a message."""
    if span is None:
        return
    span.set_attribute("error.type", error_type)
    span.set_attributes(attributes)
    span.set_status(Status(StatusCode.ERROR))
