"""Client of an HTTPS endpoint of the operator that stores audit heads.

    POST URL               {"heads": [{"tenant", "number", "head", "at", "mac"}, …]}   → 2xx once the heads are stored
    GET  URL?tenant=ID     → 200 {"heads": [the tenant's newest heads, as they were sent]}, or 404

A write-only endpoint responds to GET with 404 or 405; `get` then returns no heads to compare.
"""

from collections.abc import Mapping, Sequence

import msgspec
from yarl import URL

from gateway.domain.http.requests import UpstreamRequest, UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.configured_secret import ConfiguredSecret, as_configured
from gateway.errors import UpstreamAnswerBroken, UpstreamUnreachable
from gateway.upstream.auth.credentials import digest_of_headers
from gateway.upstream.client import UpstreamClient
from gateway.upstream.limits import MAX_HEADS_BYTES

_NO_HEADS_STATUSES = frozenset({404, 405})


class _StoredHeads(msgspec.Struct):
    heads: list[msgspec.Raw]


class EndpointHeads:
    """Audit heads of all tenants at one URL; `token` is sent as a bearer token."""

    is_memory = False

    def __init__(self, upstream: UpstreamClient, url: str, *, token: str | ConfiguredSecret | None = None) -> None:
        self._upstream = upstream
        self._url = URL(url)
        self.name = str(self._url.with_user(None).with_query(None))
        self._token = None if token is None else as_configured(token)

    @property
    def _headers(self) -> tuple[tuple[str, str], ...]:
        accept = ("Accept", "application/json")
        return (accept,) if self._token is None else (accept, ("Authorization", f"Bearer {self._token.value}"))

    async def put(self, heads: Mapping[TenantId, bytes]) -> None:
        """Send the heads; a 2xx response confirms that the endpoint stored them.

        Raises:
            UpstreamError: the request failed; the heads may or may not be stored.
        """
        own = self._headers
        headers, credential = (*own, ("Content-Type", "application/json")), digest_of_headers(own)
        body = b'{"heads":[' + b",".join(heads.values()) + b"]}"
        request = UpstreamRequest(
            method="POST", url=str(self._url), headers=headers, body=body, idempotent=True, credential=credential
        )
        response = await self._upstream.send(request, tenant=None, limit_bytes=MAX_HEADS_BYTES)
        if not 200 <= response.status < 300:
            raise _refused(response)

    async def get(self, tenant: TenantId) -> Sequence[bytes]:
        """Return the newest heads of the tenant; empty if the endpoint responds with 404 or 405.

        Raises:
            UpstreamError: the endpoint did not return heads.
        """
        url, headers = str(self._url.update_query(tenant=str(tenant))), self._headers
        request = UpstreamRequest(
            method="GET", url=url, headers=headers, idempotent=True, credential=digest_of_headers(headers)
        )
        response = await self._upstream.send(request, tenant=None, limit_bytes=MAX_HEADS_BYTES)
        if response.status in _NO_HEADS_STATUSES:
            return []
        if response.status != 200:
            raise _refused(response)
        try:
            return [bytes(head) for head in msgspec.json.decode(response.body, type=_StoredHeads).heads]
        except msgspec.MsgspecError:
            raise UpstreamAnswerBroken("The endpoint for audit heads did not return heads as JSON.") from None


def _refused(response: UpstreamResponse) -> UpstreamUnreachable:
    return UpstreamUnreachable(f"The endpoint for audit heads responded with status {response.status}.")
