"""Spans of upstream requests with method, scheme, host, port and status. Path and query may contain arguments."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from msgspec.structs import replace

from gateway.domain.http.requests import UpstreamRequest
from gateway.telemetry.traces import TRACE_HEADERS, Traces, mark_failed
from gateway.upstream.http.response import Response
from gateway.upstream.limits import MAX_METHOD_LENGTH
from gateway.upstream.ongoing_call import OngoingCall

Carried = tuple[Response, bytes, str | None]
Carry = Callable[[OngoingCall], Awaitable[Carried]]

_FIRST_ERROR_STATUS = 400


async def run_traced(traces: Traces, carry: Carry, call: OngoingCall) -> Carried:
    """Run the request in its own span; if propagation is enabled, send the trace context to the upstream."""
    method = call.request.method[:MAX_METHOD_LENGTH]
    with traces.upstream_span(method, _describe(call.request, method)) as span:
        call.request = _with_trace_headers(call.request, traces)
        response, body, cut = await carry(call)
        if span is not None:
            span.set_attribute("http.response.status_code", response.status)
        if response.status >= _FIRST_ERROR_STATUS:
            mark_failed(span, str(response.status))
        return response, body, cut


def _describe(request: UpstreamRequest, method: str) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {"http.request.method": method}
    try:
        parts = urlsplit(request.url)
        host, port = parts.hostname, parts.port
    except ValueError:  # invalid URL; the client refuses the request later
        return attributes
    attributes["url.scheme"] = parts.scheme
    attributes["server.address"] = host or ""
    attributes["server.port"] = port or (443 if parts.scheme == "https" else 80)
    return attributes


def _with_trace_headers(request: UpstreamRequest, traces: Traces) -> UpstreamRequest:
    """Return the request with the gateway's trace headers, unless its arguments already set trace headers."""
    carried = traces.headers()
    if not carried or any(name.lower() in TRACE_HEADERS for name, _ in request.headers):
        return request
    return replace(request, headers=(*request.headers, *carried.items()))
