"""The public interface of the HTTP/1.1 client: a request in wire form, sent over a pool of guarded connections.

Other packages import this module, `response` and `errors`; the other modules of the package are internal (an import
contract). The README.md of this package lists the features of the client.
"""

import asyncio

import msgspec

from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.errors import EgressDenied
from gateway.upstream.egress.allow_list import AllowLists
from gateway.upstream.egress.guard import Guard
from gateway.upstream.egress.origins import Origin, PoolKey, read_url
from gateway.upstream.egress.resolver import Lookup
from gateway.upstream.http.connection import reusable_below
from gateway.upstream.http.connector import Connector
from gateway.upstream.http.pool import ConnectionPool
from gateway.upstream.http.request_head import check_method, write_head
from gateway.upstream.http.response import Response


class WireRequest(msgspec.Struct):
    """The wire form of a request, shared by all its attempts."""

    origin: Origin
    key: PoolKey
    head: bytes
    body: bytes | None
    is_head: bool
    reusable_below: int


class WireClient:
    """The HTTP/1.1 client of one replica: at most `limit` connections, at most `share` of one tenant.

    `connect_s` limits the wait for capacity and the dial together.
    """

    def __init__(self, lookup: Lookup, guard: Guard, *, connect_s: float, limit: int, share: int) -> None:
        connector = Connector(lookup, guard, dial_s=connect_s / 2)
        self.dial = connector.dial
        self.pool = ConnectionPool(connector, connect_s=connect_s, limit=limit, share=share)

    async def send(self, message: WireRequest, lists: AllowLists | None, loop: asyncio.AbstractEventLoop) -> Response:
        """Send a request once; return its response once the head has arrived.

        The caller must release or close the response. An exception, including cancellation, closes the connection.

        Raises:
            EgressDenied: the upstream may not be dialled.
            UpstreamBusy: the tenant holds its share of the connections.
            TransportFault: no connection was made, or no head arrived (`gateway.upstream.http.errors`).
            RuntimeError: the client is closed.
            Unavailable: the tenant's allow-list cannot be read.
        """
        key = message.key
        if lists is not None and key.tenant:  # read for each attempt, because entries may be removed
            tenant = TenantId(key.tenant)
            permitted = lists.current(tenant)
            if permitted is None:
                permitted = await lists.read(tenant)
            if permitted:
                key = key._replace(permitted=permitted)
        connection = self.pool.take(key, loop.time())
        if connection is None:
            connection = await self.pool.open(key, message.origin)
        waiter = loop.create_future()
        try:
            response = connection.ask(
                message.head,
                message.body,
                waiter,
                is_head=message.is_head,
                reusable_below=message.reusable_below,
            )
            await waiter
            if response.fault is not None:
                raise response.fault
        except BaseException:
            connection.abort()
            raise
        return response

    async def close(self) -> None:
        """Close every connection; later requests are refused."""
        await self.pool.close()


def write_request(request: UpstreamRequest, tenant: str) -> WireRequest:
    """Return the wire form of a request. A refusal never repeats the refused text.

    Raises:
        EgressDenied: the URL may not be dialled.
        UpstreamUnreachable: the method or a header cannot be sent.
    """
    method = check_method(request.method)
    found = read_url(request.url)
    if found is None:
        raise EgressDenied("The gateway must not connect to the upstream's URL.")
    origin, target = found
    return WireRequest(
        origin,
        # guard: connection-of-one-tenant, connection-of-one-credential
        PoolKey(tenant, origin.key, request.credential),
        write_head(request, method, origin, target),
        request.body,
        method == "HEAD",
        reusable_below(method, request.body),
    )
