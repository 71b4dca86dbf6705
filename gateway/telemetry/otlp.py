"""Span export to an OpenTelemetry collector over HTTP; imported only if configured, as it needs the extra `traces`.

The libraries read the endpoint, the headers, the timeout and the sampler from the `OTEL_…` variables.
"""

import threading

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer

from gateway.telemetry.limits import MAX_ATTRIBUTE_LENGTH, SEND_TIMEOUT_S

_SERVICE = "mcp-gateway"


class Export:
    """Exporter that sends spans to the collector in the background until its shutdown.

    The tracer provider is not set as the global default, so that libraries add no spans of their own.
    """

    def __init__(self, version: str) -> None:
        own = Resource({"service.name": _SERVICE, "service.version": version})
        self._exporter = OTLPSpanExporter()
        self._provider = TracerProvider(
            resource=own.merge(OTELResourceDetector().detect()),
            shutdown_on_exit=False,
            span_limits=SpanLimits(max_span_attribute_length=MAX_ATTRIBUTE_LENGTH),
        )
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))

    def get_tracer(self, instrumenting_module_name: str, /) -> Tracer:
        """Return a tracer, which creates spans."""
        return self._provider.get_tracer(instrumenting_module_name)

    def shutdown(self) -> None:
        """Send the waiting spans; retries for an unavailable collector end after `SEND_TIMEOUT_S`."""
        timer = threading.Timer(SEND_TIMEOUT_S, self._exporter.shutdown)
        timer.daemon = True
        timer.start()
        try:
            self._provider.shutdown()
        finally:
            timer.cancel()
