"""How a request is sent and its answer read: one pool of guarded connections for the whole gateway.

Never: a redirect followed, a cookie kept, a proxy from the environment, a body decoded by the library, an answer read
without bounds, a request that is not idempotent sent twice. Whatever goes wrong, and on cancellation, the connection
is closed rather than used again.
"""

import asyncio
import io
import ssl
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp.client_middlewares import ClientHandlerType
from yarl import URL

from gateway.domain.requests import UpstreamAnswer, UpstreamRequest
from gateway.errors import (
    EgressDenied,
    UpstreamAnswerBroken,
    UpstreamAnswerTooLarge,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from gateway.upstream.deadlines import Deadlines, Watch
from gateway.upstream.faults import FAULTS, translate
from gateway.upstream.guard import Guard
from gateway.upstream.inflate import ACCEPTED, Inflater
from gateway.upstream.resolver import GuardedResolver, Lookup, SystemLookup
from gateway.upstream.wire import is_header_value, is_sendable_header, is_sendable_url, is_token

_MIB = 1 << 20
_CONNECTIONS = 1024
_CONNECTIONS_PER_HOST = 64
_IDLE_S = 10.0
_TICK_S = 0.25
_READ_BUFFER = 1 << 16
_OWN_HEADERS = {"User-Agent": "mcp-gateway", "Accept-Encoding": ACCEPTED}
_SKIPPED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_RETRIED_BY_AIOHTTP = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
_BODILESS = frozenset({204, 304})


class Upstream:
    """The pool, open while its block runs.

    `egress_allow` holds the operator's `host:port` entries for upstreams at private addresses. `connect_s` covers
    waiting for a free connection, resolving, dialling and TLS; `first_byte_s` the wait for the status line after
    that; `total_s` everything; between two pieces of a body at most ten seconds pass. `limit_bytes` bounds a body as
    sent and as inflated.
    """

    def __init__(
        self,
        *,
        egress_allow: Sequence[str] = (),
        connect_s: float = 3.0,
        first_byte_s: float = 15.0,
        total_s: float = 30.0,
        limit_bytes: int = 10 * _MIB,
        lookup: Lookup | None = None,
    ) -> None:
        self._guard = Guard(egress_allow)
        self._connect_s = connect_s
        self._first_s = connect_s + first_byte_s
        self._idle_s = min(_IDLE_S, first_byte_s)
        self._total_s = total_s
        self._limit = limit_bytes
        self._lookup = lookup
        self._deadlines = Deadlines(min(_TICK_S, first_byte_s / 4, total_s / 4))
        self._open: tuple[asyncio.AbstractEventLoop, aiohttp.ClientSession, Lookup] | None = None

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        lookup = self._lookup or SystemLookup()
        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(lookup, self._guard),
            socket_factory=self._guard.open_socket,
            use_dns_cache=False,
            happy_eyeballs_delay=None,
            ssl=ssl.create_default_context(),
            limit=_CONNECTIONS,
            limit_per_host=_CONNECTIONS_PER_HOST,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            headers=_OWN_HEADERS,
            skip_auto_headers=_SKIPPED,
            timeout=aiohttp.ClientTimeout(total=None, connect=self._connect_s, sock_connect=self._connect_s / 2),
            read_bufsize=_READ_BUFFER,
        )
        self._open = loop, session, lookup
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            _, session, lookup = self._open
            self._open = None
            self._deadlines.stop()
            await session.close()
            lookup.close()

    async def send(self, request: UpstreamRequest, *, limit_bytes: int | None = None) -> UpstreamAnswer:
        """Send one request and read its whole answer; a redirect is an answer like any other.

        Raises:
            EgressDenied: the URL or an address behind it is not one the gateway may dial; nothing was sent.
            UpstreamUnreachable: no connection, or it broke.
            UpstreamTimeout: one of the deadlines passed.
            UpstreamAnswerTooLarge: the body is beyond the limit, as sent or inflated.
            UpstreamAnswerBroken: the answer is not HTTP or not in the encoding it names.
        """
        if self._open is None:
            raise RuntimeError("the pool is not open")
        url = _check(request)
        loop, session, _ = self._open
        watch = self._deadlines.open(loop, first_s=self._first_s, total_s=self._total_s)
        try:
            response = await _ask(session, request, url)
            try:
                body = await self._read(request, response, watch, limit_bytes or self._limit)
            except BaseException:
                response.close()
                raise
        except asyncio.CancelledError:
            if watch.settle():
                raise UpstreamTimeout("The upstream did not answer in time.") from None
            raise
        except FAULTS as error:
            raise translate(error) from None
        finally:
            self._deadlines.close(watch)
        headers = response.headers
        return UpstreamAnswer(
            status=response.status,
            content_type=_ascii(headers.get("Content-Type", "")),
            body=body,
            retry_after=None if (retry_after := headers.get("Retry-After")) is None else _ascii(retry_after),
        )

    async def _read(
        self, request: UpstreamRequest, response: aiohttp.ClientResponse, watch: Watch, limit: int
    ) -> bytes:
        status, content, headers = response.status, response.content, response.headers
        if not 200 <= status <= 599:
            raise UpstreamAnswerBroken("The upstream's answer has a status that no answer can have.")
        if request.method == "HEAD" or status in _BODILESS:
            return b""
        declared = headers.get("Content-Length")
        if declared is not None and int(declared) > limit:
            raise _too_large()
        if content.at_eof():
            return b""
        encodings = headers.getall("Content-Encoding", None)
        if encodings is None:
            return await self._read_plain(content, watch, limit)
        return await self._read_encoded(content, watch, Inflater(",".join(encodings), limit=limit))

    async def _read_plain(self, content: aiohttp.StreamReader, watch: Watch, limit: int) -> bytes:
        piece = await self._next_piece(content, watch)
        if content.at_eof() and len(piece) <= limit:
            return piece
        whole = bytearray(piece)
        while len(whole) <= limit:
            if content.at_eof():
                return bytes(whole)
            whole += await self._next_piece(content, watch)
        raise _too_large()

    async def _read_encoded(self, content: aiohttp.StreamReader, watch: Watch, inflater: Inflater) -> bytes:
        while not content.at_eof():
            inflater.feed(await self._next_piece(content, watch))
            await asyncio.sleep(0)  # a small piece may inflate to a large one: let others run in between
        return inflater.finish()

    async def _next_piece(self, content: aiohttp.StreamReader, watch: Watch) -> bytes:
        watch.allow(asyncio.get_running_loop().time() + self._idle_s)
        return await content.readany()


async def _ask(session: aiohttp.ClientSession, request: UpstreamRequest, url: URL) -> aiohttp.ClientResponse:
    body = request.body
    return await session.request(
        request.method,
        url,
        headers=request.headers,
        data=io.BytesIO(body) if body is not None and len(body) >= _MIB else body,  # large bytes make aiohttp warn
        allow_redirects=False,
        middlewares=(_ask_once,) if request.method in _RETRIED_BY_AIOHTTP and not request.idempotent else None,
    )


async def _ask_once(request: aiohttp.ClientRequest, handler: ClientHandlerType) -> aiohttp.ClientResponse:
    """aiohttp repeats these methods when a kept connection turns out closed; an error of ours is not repeated."""
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise translate(error) from None


def _check(request: UpstreamRequest) -> URL:
    """The URL of a request that will be on the wire what it is here; the refusal never repeats what it refuses."""
    if not is_token(request.method) or request.method == "CONNECT":
        raise UpstreamUnreachable("The request has a method that cannot be sent.")
    for name, value in request.headers:
        if not is_sendable_header(name) or not is_header_value(value):
            raise UpstreamUnreachable("The request has a header that cannot be sent.")
    if not is_sendable_url(request.url):
        raise EgressDenied("The upstream's URL is not one that this gateway may dial.")
    return URL(request.url, encoded=True)


def _ascii(value: str) -> str:
    """A header value without the bytes that aiohttp could not decode, which no JSON could carry on."""
    return value if value.isascii() else value.encode("ascii", "replace").decode("ascii")


def _too_large() -> UpstreamAnswerTooLarge:
    return UpstreamAnswerTooLarge("The upstream's answer has more bytes than a result may have.")
