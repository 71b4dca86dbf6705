"""How a request is sent and its answer read: one pool of guarded connections for the whole gateway.

Never: a redirect followed, a cookie kept, a proxy from the environment, a body decoded by the library, an answer read
without bounds, a request that is not idempotent sent twice. Whatever goes wrong, and on cancellation, the connection
is closed rather than used again. Each tenant has a lane of its own to each upstream (`lanes`), so that what one of them
meets there is felt by no other.
"""

import asyncio
import io
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from gateway.domain.identifiers import TenantId
from gateway.domain.requests import UpstreamAnswer, UpstreamRequest
from gateway.errors import (
    EgressDenied,
    UpstreamAnswerBroken,
    UpstreamAnswerTooLarge,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from gateway.telemetry.traces import Traces
from gateway.upstream.deadlines import Deadlines, Patience, Watch
from gateway.upstream.events import Events, is_event_stream
from gateway.upstream.faults import FAULTS, translate
from gateway.upstream.guard import Guard
from gateway.upstream.inflate import ACCEPTED, Inflater, open_inflater
from gateway.upstream.lanes import Lane, Lanes, Rules
from gateway.upstream.resolver import GuardedResolver, Lookup, SystemLookup
from gateway.upstream.retries import WORTH_A_LOOK, after_answer, after_fault, is_failure
from gateway.upstream.tracing import Carried, Carry, run_traced
from gateway.upstream.wire import is_header_value, is_sendable_header, is_sendable_url, is_token

_MIB = 1 << 20
_CONNECTIONS = 1024
_IDLE_S = 10.0
_TICK_S = 0.25
_READ_BUFFER = 1 << 16
_OWN_HEADERS = {"User-Agent": "mcp-gateway", "Accept-Encoding": ACCEPTED}
_SKIPPED = CIMultiDict((name, None) for name in ("User-Agent", "Accept", "Accept-Encoding", "Content-Type"))
_WORTH_WAITING_S = 1.0
"""A request is not sent again when less than this would be left of its time."""
_BODILESS = frozenset({204, 304})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Those that need no look."""
_REDIRECTS, _ERRORS = 300, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeAnswer:
    """An answer with all its headers, for whoever needs more of it than a call does."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class _Request(aiohttp.ClientRequest):
    """A request with the headers that it is given and no others; aiohttp would find that out anew each time."""

    def update_auto_headers(self, skip_auto_headers: Iterable[str] | None) -> None:
        """None."""
        del skip_auto_headers
        self._skip_auto_headers = _SKIPPED


class Upstream:
    """The pool, open while its block runs.

    `egress_allow` holds the operator's `host:port` entries for upstreams at private addresses; `limit_bytes` bounds a
    body as sent and as inflated.
    """

    def __init__(
        self,
        *,
        egress_allow: Sequence[str] = (),
        patience: Patience | None = None,
        rules: Rules | None = None,
        limit_bytes: int = 10 * _MIB,
        lookup: Lookup | None = None,
        traces: Traces | None = None,
    ) -> None:
        patience = patience or Patience()
        self._guard = Guard(egress_allow)
        self._connect_s = patience.connect_s
        self._first_s = patience.connect_s + patience.first_byte_s
        self._idle_s = min(_IDLE_S, patience.first_byte_s)
        self._total_s = patience.total_s
        self._stream_s = patience.stream_s
        self._limit = limit_bytes
        self._run: Carry = self._carry if traces is None else partial(run_traced, traces, self._carry)
        self._lookup = lookup
        self._lanes = Lanes(rules)
        self._tick_s = min(_TICK_S, patience.first_byte_s / 4, patience.total_s / 4)
        self._deadlines = Deadlines(self._tick_s)
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
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            headers=_OWN_HEADERS,
            request_class=_Request,
            timeout=aiohttp.ClientTimeout(total=None, connect=self._connect_s, sock_connect=self._connect_s / 2),
            read_bufsize=_READ_BUFFER,
        )
        session._retry_connection = False  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # `retries` does that
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

    async def send(
        self, request: UpstreamRequest, *, tenant: TenantId | None = None, limit_bytes: int | None = None
    ) -> UpstreamAnswer:
        """Send one request and read its whole answer; a redirect is an answer like any other.

        Raises:
            EgressDenied: the URL or an address behind it is not one the gateway may dial; nothing was sent.
            UpstreamBusy, UpstreamSuspended: the tenant has too much under way there, or it rests; nothing was sent.
            UpstreamUnreachable: no connection, or it broke.
            UpstreamTimeout: one of the deadlines passed.
            UpstreamAnswerTooLarge: the body is beyond the limit, as sent or inflated.
            UpstreamAnswerBroken: the answer is not HTTP or not in the encoding it names.
        """
        return _answer(await self._whole(request, tenant, limit_bytes))

    async def listen(self, request: UpstreamRequest, *, tenant: TenantId | None = None) -> UpstreamAnswer:
        """The same, but of a stream of events that goes on as much as came within the bounds; `cut` says so.

        Raises:
            UpstreamError: as for `send`.
        """
        return _answer(await self._run(request, tenant, self._limit))

    async def ask(
        self, request: UpstreamRequest, *, tenant: TenantId | None = None, limit_bytes: int | None = None
    ) -> WholeAnswer:
        """The same with all headers of the answer.

        Raises:
            UpstreamError: as for `send`.
        """
        response, body, _ = await self._whole(request, tenant, limit_bytes)
        headers = tuple((name, _ascii(value)) for name, value in response.headers.items())
        return WholeAnswer(status=response.status, headers=headers, body=body)

    async def _whole(self, request: UpstreamRequest, tenant: TenantId | None, limit_bytes: int | None) -> Carried:
        carried = await self._run(request, tenant, limit_bytes or self._limit)
        if carried[2] is not None:
            raise UpstreamTimeout("The upstream answered with a stream of events that goes on.")
        return carried

    async def _carry(self, request: UpstreamRequest, tenant: TenantId | None, limit: int) -> Carried:
        """The request in its lane, from the wait for a place to what the lane learns of how it went."""
        if self._open is None:
            raise RuntimeError("the pool is not open")
        url = _check(request)
        loop, _, _ = self._open
        lane = self._lanes.find(tenant or "", url)
        waited_s = 0.0 if lane.admit() else await lane.wait(loop)
        watch = self._deadlines.open(loop, first_s=self._first_s, total_s=self._total_s - waited_s)
        try:
            carried = await self._persist(request, url, limit, lane=lane, watch=watch)
            if is_failure(carried[0].status):
                lane.fail(loop)
            else:
                lane.succeed()
        except asyncio.CancelledError:
            if watch.settle():
                lane.fail(loop)
                raise UpstreamTimeout("The upstream did not answer in time.") from None
            raise
        except (UpstreamAnswerBroken, UpstreamAnswerTooLarge):
            lane.succeed()
            raise
        except FAULTS as error:
            ours = translate(error)
            if isinstance(ours, UpstreamUnreachable | UpstreamTimeout):
                lane.fail(loop)
            raise ours from None
        finally:
            self._deadlines.close(watch)
            lane.leave()
        return carried

    async def _persist(self, request: UpstreamRequest, url: URL, limit: int, *, lane: Lane, watch: Watch) -> Carried:
        """Send the request, and again where that is safe, worth it, paid for and in time."""
        attempt = 0
        while True:
            try:
                response = await self._ask(request, url)
            except FAULTS as error:
                pause_s = after_fault(error, request, attempt)
                if not self._may_repeat(pause_s, watch, lane):
                    raise
            else:
                try:
                    body, cut = await self._read(request, response, watch, limit)
                except BaseException:
                    response.close()
                    raise
                if response.status < WORTH_A_LOOK:
                    return response, body, cut
                pause_s = after_answer(response.status, response.headers.get("Retry-After"), request, attempt)
                if not self._may_repeat(pause_s, watch, lane):
                    return response, body, cut
            attempt += 1
            await asyncio.sleep(pause_s or 0.0)
            watch.allow(asyncio.get_running_loop().time() + self._first_s)

    @staticmethod
    def _may_repeat(pause_s: float | None, watch: Watch, lane: Lane) -> bool:
        if pause_s is None:
            return False
        now = asyncio.get_running_loop().time()
        if now + pause_s + _WORTH_WAITING_S > watch.last or not lane.pay(now):
            return False
        watch.allow(watch.last)
        return True

    async def _ask(self, request: UpstreamRequest, url: URL) -> aiohttp.ClientResponse:
        if self._open is None:  # closed while this call waited
            raise RuntimeError("the pool is not open")
        _, session, _ = self._open
        body = request.body
        return await session.request(
            request.method,
            url,
            headers=request.headers,
            data=io.BytesIO(body) if body is not None and len(body) >= _MIB else body,  # large bytes make aiohttp warn
            allow_redirects=False,
        )

    async def _read(
        self, request: UpstreamRequest, response: aiohttp.ClientResponse, watch: Watch, limit: int
    ) -> tuple[bytes, str | None]:
        """The body, and what is missing of it where it is a stream of events that goes on."""
        status, content, headers = response.status, response.content, response.headers
        if not 200 <= status <= 599:
            raise UpstreamAnswerBroken("The upstream's answer has a status that no answer can have.")
        if request.method == "HEAD" or status in _BODILESS:
            return b"", None
        declared = headers.get("Content-Length")
        if declared is not None and int(declared) > limit:
            raise _too_large()
        if content.at_eof():
            return b"", None
        inflater = open_inflater(headers.getall("Content-Encoding", ()), limit=limit)
        if declared is None and is_event_stream(headers.get("Content-Type", "")):
            return await self._read_events(response, watch, inflater, limit)
        if inflater is None:
            return await self._read_plain(content, watch, limit), None
        return await self._read_encoded(content, watch, inflater), None

    async def _read_events(
        self, response: aiohttp.ClientResponse, watch: Watch, inflater: Inflater | None, limit: int
    ) -> tuple[bytes, str | None]:
        """As many events as come in time and within bounds; the connection of a stream that goes on is closed."""
        content, events, now = response.content, Events(limit), asyncio.get_running_loop().time()
        until = min(now + self._stream_s, watch.last - 2 * self._tick_s)
        watch.allow(watch.last)
        try:
            async with asyncio.timeout_at(until):
                while not content.at_eof() and not events.is_full:
                    piece = await content.readany()
                    events.feed(piece if inflater is None else _inflated(inflater, piece))
        except TimeoutError:
            if not events.has_begun:
                raise
        if not content.at_eof() or events.is_full:
            response.close()
            return events.begun(), events.describe(until - now)
        if inflater is not None:
            events.feed(inflater.finish())
        return events.whole(), None

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


def _check(request: UpstreamRequest) -> URL:
    """The URL of a request that will be on the wire what it is here; the refusal never repeats what it refuses."""
    if request.method not in _METHODS and (not is_token(request.method) or request.method == "CONNECT"):
        raise UpstreamUnreachable("The request has a method that cannot be sent.")
    for name, value in request.headers:
        if not is_sendable_header(name) or not is_header_value(value):
            raise UpstreamUnreachable("The request has a header that cannot be sent.")
    url = URL(request.url, encoded=True) if is_sendable_url(request.url) else None
    if url is None or not _has_port(url):
        raise EgressDenied("The upstream's URL is not one that this gateway may dial.")
    return url


def _answer(carried: Carried) -> UpstreamAnswer:
    response, body, cut = carried
    headers = response.headers
    return UpstreamAnswer(
        status=response.status,
        content_type=_ascii(headers.get("Content-Type", "")),
        body=body,
        retry_after=None if (retry_after := headers.get("Retry-After")) is None else _ascii(retry_after),
        location=_location(response),
        cut=cut,
    )


def _inflated(inflater: Inflater, piece: bytes) -> bytes:
    inflater.feed(piece)
    return inflater.take()


def _has_port(url: URL) -> bool:
    try:
        return url.port is not None
    except ValueError:  # such as 99999
        return False


def _location(response: aiohttp.ClientResponse) -> str | None:
    """Where a redirect points, which is told and never followed."""
    if not _REDIRECTS <= response.status < _ERRORS or (value := response.headers.get("Location")) is None:
        return None
    return _ascii(value)


def _ascii(value: str) -> str:
    """A header value without the bytes that aiohttp could not decode, which no JSON could carry on."""
    return value if value.isascii() else value.encode("ascii", "replace").decode("ascii")


def _too_large() -> UpstreamAnswerTooLarge:
    return UpstreamAnswerTooLarge("The upstream's answer has more bytes than a result may have.")
