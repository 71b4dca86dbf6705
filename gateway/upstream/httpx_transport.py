"""httpx over the guarded pool: for libraries that speak httpx and for whatever is not a tool call.

Every request, also each one that follows a redirect, goes through the same door as a call: address checked, bounds
kept, the tenant's lane, no proxy. The answer is read whole before httpx sees it.
"""

import httpx

from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.upstream.auth.credentials import digest_of_headers
from gateway.upstream.client import UpstreamClient

_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "user-agent", "keep-alive"}
)
"""What httpx adds and the pool writes itself."""
_DONE = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection"})
"""What was true of the answer on the wire and is not of the body that is handed on."""
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS"})


class GuardedTransport(httpx.AsyncBaseTransport):
    """Sends what httpx asks for through the pool; closing it leaves the pool open."""

    def __init__(self, upstream: UpstreamClient, *, tenant: TenantId | None, limit_bytes: int | None = None) -> None:
        self._upstream = upstream
        self._tenant = tenant
        self._limit = limit_bytes

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One exchange.

        Raises:
            UpstreamError: as the pool's `send`; ours, not httpx's, because nobody is to take them for answers.
        """
        answer = await self._upstream.ask(
            UpstreamRequest(
                method=request.method,
                url=str(request.url.copy_with(fragment=None)),
                headers=tuple((name, value) for name, value in request.headers.multi_items() if name not in _OURS),
                body=await request.aread() or None,
                idempotent=request.method in _IDEMPOTENT,
                credential=digest_of_headers(request.headers.multi_items()),
            ),
            tenant=self._tenant,
            limit_bytes=self._limit,
        )
        headers = [(name, value) for name, value in answer.headers if name.lower() not in _DONE]
        return httpx.Response(answer.status, headers=headers, content=answer.body, request=request)


def guarded_client(
    upstream: UpstreamClient, *, tenant: TenantId | None, limit_bytes: int | None = None, follow_redirects: bool = False
) -> httpx.AsyncClient:
    """An httpx client that has no other way out than the pool; it keeps no proxy and no variable of the environment."""
    return httpx.AsyncClient(
        transport=GuardedTransport(upstream, tenant=tenant, limit_bytes=limit_bytes),
        trust_env=False,
        timeout=None,  # noqa: S113  # the pool's own deadlines
        follow_redirects=follow_redirects,
        max_redirects=3,
    )
