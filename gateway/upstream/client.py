"""Upstream client: sends requests and reads their responses over one pool of guarded connections per replica.

The client never follows a redirect, stores a cookie or uses a proxy from the environment. Every response is read within
limits. A request that is not idempotent is sent at most once. After an exception, including cancellation, the
connection is closed. An idle connection is reused only for the same tenant and credentials. Each tenant has its own
bulkhead per upstream, so that a failing or slow upstream of one tenant does not affect other tenants.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

from gateway.domain.http.requests import UpstreamRequest, UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import ResultBusy
from gateway.errors import (
    UpstreamAnswerBroken,
    UpstreamAnswerTooLarge,
    UpstreamBusy,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from gateway.telemetry.traces import Traces
from gateway.upstream.body_reader import BodyReader
from gateway.upstream.body_room import BodyHolder, BodyRoom
from gateway.upstream.bulkhead import Bulkhead, BulkheadLimits, Bulkheads
from gateway.upstream.byte_streams import ByteStream, dial_tcp, dial_unix
from gateway.upstream.deadlines import Deadline, Deadlines, Timeouts
from gateway.upstream.egress.allow_list import NOTHING, UNIX, AllowEntry, AllowList, AllowLists
from gateway.upstream.egress.guard import Guard, denied
from gateway.upstream.egress.resolver import Lookup, SystemLookup
from gateway.upstream.http.errors import FAULTS, translate
from gateway.upstream.http.exchange import WireClient, write_request
from gateway.upstream.limits import DEADLINE_TICK_S, MIN_RETRY_WINDOW_S
from gateway.upstream.ongoing_call import OngoingCall
from gateway.upstream.response_stream import ResponseStream
from gateway.upstream.retries import FIRST_RETRIABLE, after_fault, after_response, is_failure
from gateway.upstream.shown_headers import read_shown_headers
from gateway.upstream.tracing import Carried, Carry, run_traced

_MIB = 1 << 20
_CONNECTIONS = 1024
_SHARE = _CONNECTIONS // 4
"""Limit on the connections of one tenant, so that unresponsive upstreams of one tenant do not exhaust the pool."""
_REDIRECTS, _ERRORS = 300, 400
_NO_ROOM = "Too many large responses are being read for the tenant, or for all tenants; retry later."


@dataclass(frozen=True, slots=True, kw_only=True)
class FullResponse:
    """A complete response with all headers, for callers other than tool calls."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class UpstreamClient:
    """The upstream client; its connection pool is open while the `async with` block runs.

    `egress_allow` contains the operator's `host:port` entries for upstreams at private addresses or other ports, for
    all tenants. `set_allow_lists` adds the entries of single tenants. `limit_bytes` bounds the declared length of a
    body and its decompressed size.
    """

    def __init__(
        self,
        *,
        egress_allow: Sequence[str] = (),
        timeouts: Timeouts | None = None,
        rules: BulkheadLimits | None = None,
        limit_bytes: int = 10 * _MIB,
        lookup: Lookup | None = None,
        traces: Traces | None = None,
    ) -> None:
        timeouts = timeouts or Timeouts()
        self._guard = Guard(egress_allow)
        self._allow_lists: AllowLists | None = None
        self._connect_s = timeouts.connect_s
        self._first_s = timeouts.connect_s + timeouts.first_byte_s
        self._total_s = timeouts.total_s
        self._max_s = timeouts.max_s
        self._limit = limit_bytes
        self._run: Carry = (
            self._run_in_bulkhead if traces is None else partial(run_traced, traces, self._run_in_bulkhead)
        )
        self._lookup = lookup
        self._bulkheads = Bulkheads(rules)
        self._tick_s = min(DEADLINE_TICK_S, timeouts.first_byte_s / 4, timeouts.total_s / 4)
        self._deadlines = Deadlines(self._tick_s)
        self.room = BodyRoom()
        """The room for large bodies, and for results that are as large."""
        self._bodies = BodyReader(
            self.room, first_byte_s=timeouts.first_byte_s, stream_s=timeouts.stream_s, tick_s=self._tick_s
        )
        self._open: tuple[asyncio.AbstractEventLoop, WireClient] | None = None

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        lookup = self._lookup or SystemLookup()
        http = WireClient(lookup, self._guard, connect_s=self._connect_s, limit=_CONNECTIONS, share=_SHARE)
        self._open = loop, http
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            _, http = self._open
            self._open = None
            self._deadlines.stop()
            await http.close()

    def set_allow_lists(self, allow_lists: AllowLists) -> None:
        """Set the tenants' own allow-lists; requests without a tenant are limited to `egress_allow`."""
        self._allow_lists = allow_lists

    async def send(
        self,
        request: UpstreamRequest,
        *,
        tenant: TenantId | None = None,
        limit_bytes: int | None = None,
        holder: BodyHolder | None = None,
    ) -> UpstreamResponse:
        """Send one request and return its complete response; redirects are not followed.

        `holder` keeps the room of a large body; without one, only the reading of the body is counted.

        Raises:
            EgressDenied: the gateway may not dial the URL or an address behind it; this attempt sent nothing.
            UpstreamBusy: the tenant has too many calls to this upstream, or connections, and this attempt sent nothing;
                or, without a holder, its large body had no room in time.
            UpstreamSuspended: the circuit of this upstream is open; nothing was sent.
            UpstreamUnreachable: no connection was established, it was lost, or the method or a header cannot be sent.
            UpstreamTimeout: a deadline passed, or the response is an event stream beyond its bounds.
            UpstreamAnswerTooLarge: the declared length or the decompressed body exceeds the limit.
            UpstreamAnswerBroken: the response is not HTTP, or its content encoding is invalid or was not offered.
            ResultBusy: the upstream has answered, but its large body, which the holder keeps, had no room in time.
            Unavailable: the tenant's allow-list cannot be read.
        """
        return _answer(await self._send_complete(request, tenant, limit_bytes, holder))

    async def send_streaming(
        self, request: UpstreamRequest, *, tenant: TenantId | None = None, holder: BodyHolder | None = None
    ) -> UpstreamResponse:
        """Send one request, as `send` does, but accept an event stream that does not end.

        The body of such a stream contains the events that arrived within the bounds; `cut` describes the missing part.

        Raises:
            UpstreamError, ResultBusy, Unavailable: as for `send`.
        """
        return _answer(await self._run(OngoingCall(request, tenant, self._limit, holder)))

    async def send_full(
        self, request: UpstreamRequest, *, tenant: TenantId | None = None, limit_bytes: int | None = None
    ) -> FullResponse:
        """Send one request, as `send` does, and return the response with all its headers.

        Raises:
            UpstreamError, Unavailable: as for `send` without a holder.
        """
        response, body, _ = await self._send_complete(request, tenant, limit_bytes, None)
        return FullResponse(status=response.status, headers=response.headers(), body=body)

    async def open_stream(self, entry: AllowEntry, *, tenant: TenantId, is_tls: bool = False) -> ByteStream:
        """Connect to a socket or host on an allow-list; public addresses must be listed too.

        Raises:
            EgressDenied: the entry is on no allow-list of the tenant, or resolves to a forbidden address.
            UpstreamUnreachable, UpstreamTimeout: no connection was established.
            Unavailable: the tenant's allow-list cannot be read.
        """
        if self._open is None:
            raise RuntimeError("the pool is not open")
        permitted = await self.check_listed(entry, tenant=tenant)
        try:
            if str(entry[0]).startswith(UNIX):
                return await dial_unix(str(entry[0]).removeprefix(UNIX))
            return await dial_tcp(entry, self._open[1].dial, permitted, is_tls=is_tls)
        except FAULTS as error:
            raise translate(error) from None

    async def check_listed(self, entry: AllowEntry, *, tenant: TenantId) -> AllowList:
        """Return the tenant's allow-list if this list or the global one currently contains the entry.

        Raises:
            EgressDenied: neither list contains the entry.
            Unavailable: the tenant's allow-list cannot be read.
        """
        lists, permitted = self._allow_lists, NOTHING
        if lists is not None:
            current = lists.current(tenant)
            permitted = await lists.read(tenant) if current is None else current
        if not self._guard.is_listed(entry, permitted):  # guard: egress-listed-streams
            raise denied()
        return permitted

    async def open_response(self, request: UpstreamRequest, *, tenant: TenantId, limit_bytes: int) -> ResponseStream:
        """Send a request without retries; return its response when the head has arrived. The caller sets the deadline.

        The request holds a bulkhead slot until then, so that open streams do not block other calls. The circuit breaker
        does not apply, because attachments of live sources have their own back-off.

        Raises:
            UpstreamError, Unavailable: as for `send`.
        """
        if self._open is None:
            raise RuntimeError("the pool is not open")
        message = write_request(request, tenant)
        loop, http = self._open
        bulkhead = self._bulkheads.find(tenant, message.origin)
        await bulkhead.occupy(loop)
        try:
            response = await http.send(message, self._allow_lists, loop)
        except FAULTS as error:
            raise translate(error) from None
        finally:
            bulkhead.leave()
        try:
            return ResponseStream(response, limit_bytes=limit_bytes)
        except UpstreamAnswerBroken:
            response.close()
            raise

    async def _send_complete(
        self,
        request: UpstreamRequest,
        tenant: TenantId | None,
        limit_bytes: int | None,
        holder: BodyHolder | None,
    ) -> Carried:
        carried = await self._run(OngoingCall(request, tenant, limit_bytes or self._limit, holder))
        if carried[2] is not None:  # guard: part-of-an-answer
            raise UpstreamTimeout("The upstream responded with an endless stream of events.")
        return carried

    async def _run_in_bulkhead(self, call: OngoingCall) -> Carried:
        """Run the call within its bulkhead: wait for a slot, send, and report the outcome."""
        if self._open is None:
            raise RuntimeError("the pool is not open")
        tenant = call.tenant or ""
        message = call.message = write_request(call.request, tenant)
        loop, _ = self._open
        bulkhead = call.bulkhead = self._bulkheads.find(tenant, message.origin)
        waited_s = 0.0 if bulkhead.admit() else await bulkhead.wait(loop)
        call.has_slot = True
        deadline = call.deadline = self._open_deadline(call.request.timeout_s, waited_s, loop)
        size = 0
        try:
            carried = await self._send_with_retries(call)
            size = len(carried[1])
            if is_failure(carried[0].status):
                bulkhead.fail(loop)
            else:
                bulkhead.succeed()
        except asyncio.CancelledError:
            if deadline.withdraw():
                bulkhead.fail(loop)
                raise translate(TimeoutError(), call.request.method) from None
            raise
        except (UpstreamAnswerBroken, UpstreamAnswerTooLarge):
            bulkhead.succeed()
            raise
        except ResultBusy as error:
            bulkhead.succeed()
            if call.holder is not None:
                raise
            raise UpstreamBusy(_NO_ROOM, retry_after_s=error.retry_after_s) from None  # no call has run
        except FAULTS as error:
            ours = translate(error, call.request.method)
            if isinstance(ours, UpstreamUnreachable | UpstreamTimeout):
                bulkhead.fail(loop)
            raise ours from None
        finally:
            self._deadlines.close(deadline)
            call.end(size)
        return carried

    def _open_deadline(self, own_s: float | None, waited_s: float, loop: asyncio.AbstractEventLoop) -> Deadline:
        """Return the deadline of a call that waited for its slot; with a time limit of its own, this one applies."""
        if own_s is None:
            return self._deadlines.open(loop, first_s=self._first_s, total_s=self._total_s - waited_s)
        total_s = min(own_s, self._max_s)  # guard: timeout-maximum
        return self._deadlines.open(loop, first_s=total_s, total_s=total_s, is_whole=True)

    async def _send_with_retries(self, call: OngoingCall) -> Carried:
        """Send the request. Retry it while the policy (`retries`), the retry budget and the remaining time allow it."""
        request, deadline, bulkhead = call.request, call.deadline, call.bulkhead
        attempt = 0
        while True:
            try:
                if self._open is None:  # closed while this call waited
                    raise RuntimeError("the pool is not open")
                loop, http = self._open
                response = await http.send(call.message, self._allow_lists, loop)
            except FAULTS as error:
                pause_s = after_fault(error, request, attempt)
                if not self._may_repeat(pause_s, deadline, bulkhead):
                    raise
            else:
                try:
                    body, cut = await self._bodies.read(response, call)
                except BaseException:
                    response.close()
                    raise
                response.release()
                if response.status < FIRST_RETRIABLE:
                    return response, body, cut
                pause_s = after_response(response.status, response.field(b"retry-after"), request, attempt)
                if not self._may_repeat(pause_s, deadline, bulkhead):
                    return response, body, cut
            attempt += 1
            await asyncio.sleep(pause_s or 0.0)
            deadline.allow(asyncio.get_running_loop().time() + self._first_s)

    @staticmethod
    def _may_repeat(pause_s: float | None, deadline: Deadline, bulkhead: Bulkhead) -> bool:
        if pause_s is None:
            return False
        now = asyncio.get_running_loop().time()
        if now + pause_s + MIN_RETRY_WINDOW_S > deadline.last or not bulkhead.pay(now):
            return False
        deadline.allow(deadline.last)
        return True


def _answer(carried: Carried) -> UpstreamResponse:
    response, body, cut = carried
    is_redirect = _REDIRECTS <= response.status < _ERRORS
    return UpstreamResponse(
        status=response.status,
        content_type=response.field(b"content-type") or "",
        body=body,
        retry_after=response.field(b"retry-after"),
        location=response.field(b"location") if is_redirect else None,
        headers=read_shown_headers(response, has_body=bool(body)),
        cut=cut,
    )
