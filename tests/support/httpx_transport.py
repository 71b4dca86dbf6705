"""httpx transport over the upstream client, for libraries that use httpx and for requests that are not tool calls.

Every request, including each one that follows a redirect, passes the same controls as a tool call: address check,
limits, the tenant's bulkhead, no proxy. The response is read completely before httpx receives it.
"""

import httpx

from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.upstream.auth.credentials import digest_of_headers
from gateway.upstream.client import UpstreamClient

_OMITTED_REQUEST_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "user-agent", "keep-alive"}
)
"""Headers of httpx that are dropped, because the pool frames the request itself."""
_OMITTED_RESPONSE_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection"})
"""Headers that do not match the decoded body, which is what httpx receives."""
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS"})


class GuardedTransport(httpx.AsyncBaseTransport):
    """Sends httpx requests through the pool; closing the transport leaves the pool open."""

    def __init__(self, upstream: UpstreamClient, *, tenant: TenantId | None, limit_bytes: int | None = None) -> None:
        self._upstream = upstream
        self._tenant = tenant
        self._limit = limit_bytes

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return its response.

        Raises:
            UpstreamError, Unavailable: as for `UpstreamClient.send`. They are not httpx errors.
        """
        response = await self._upstream.send_full(
            UpstreamRequest(
                method=request.method,
                url=str(request.url.copy_with(fragment=None)),
                headers=tuple(
                    (name, value)
                    for name, value in request.headers.multi_items()
                    if name not in _OMITTED_REQUEST_HEADERS
                ),
                body=await request.aread() or None,
                idempotent=request.method in _IDEMPOTENT,
                credential=digest_of_headers(request.headers.multi_items()),
            ),
            tenant=self._tenant,
            limit_bytes=self._limit,
        )
        headers = [(name, value) for name, value in response.headers if name.lower() not in _OMITTED_RESPONSE_HEADERS]
        return httpx.Response(response.status, headers=headers, content=response.body, request=request)


def guarded_client(
    upstream: UpstreamClient, *, tenant: TenantId | None, limit_bytes: int | None = None, follow_redirects: bool = False
) -> httpx.AsyncClient:
    """Return an httpx client that sends only through the pool; it uses no proxy and no environment variable."""
    return httpx.AsyncClient(
        transport=GuardedTransport(upstream, tenant=tenant, limit_bytes=limit_bytes),
        trust_env=False,
        timeout=None,  # the pool's own deadlines
        follow_redirects=follow_redirects,
        max_redirects=3,
    )
