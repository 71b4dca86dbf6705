"""Spans of upstream requests: method, host and status. Path and query stay out, because they contain arguments."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from msgspec.structs import replace

from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.telemetry.traces import CARRIED, Traces, fail
from gateway.upstream.http.response import Response

Carried = tuple[Response, bytes, str | None]
Carry = Callable[[UpstreamRequest, TenantId | None, int], Awaitable[Carried]]

_FAILED = 400
_LONGEST = 32


async def run_traced(
    traces: Traces, carry: Carry, request: UpstreamRequest, tenant: TenantId | None, limit: int
) -> Carried:
    """Run the request in a span of its own; the upstream receives the trace context if forwarding is on."""
    method = request.method[:_LONGEST]
    with traces.asking(method, _describe(request, method)) as span:
        response, body, cut = await carry(_telling(request, traces), tenant, limit)
        if span is not None:
            span.set_attribute("http.response.status_code", response.status)
        if response.status >= _FAILED:
            fail(span, str(response.status))
        return response, body, cut


def _describe(request: UpstreamRequest, method: str) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {"http.request.method": method}
    try:
        parts = urlsplit(request.url)
        host, port = parts.hostname, parts.port
    except ValueError:  # it will be refused
        return attributes
    attributes["url.scheme"] = parts.scheme
    attributes["server.address"] = host or ""
    attributes["server.port"] = port or (443 if parts.scheme == "https" else 80)
    return attributes


def _telling(request: UpstreamRequest, traces: Traces) -> UpstreamRequest:
    """The request with our trace headers; one that has trace headers from the tenant's own document stays unchanged."""
    told = traces.told()
    if not told or any(name.lower() in CARRIED for name, _ in request.headers):
        return request
    return replace(request, headers=(*request.headers, *told.items()))
