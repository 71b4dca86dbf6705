"""`gateway stdio --url`: forwards JSON-RPC messages between standard streams and the MCP URL of a tenant.

Each request of the client is one POST; its messages and its response are written as they arrive. In the handshake era,
the standalone stream is open from `notifications/initialized`. In 2026-07-28, a cancelled request ends its POST, which
is that revision's form of a cancellation.
"""

from contextlib import suppress
from typing import Final

import anyio
import httpx
from anyio.abc import TaskGroup

from gateway.cli.contexts.chosen import tenant_key
from gateway.cli.failures import one_line as without_controls
from gateway.cli.input.options import chosen_mcp_url
from gateway.cli.output.printing import echo
from gateway.cli.stdio.event_stream import read_events
from gateway.cli.stdio.exchange import FAILURES, Exchange
from gateway.cli.stdio.limits import END_SESSION_S, FIRST_PAUSE_S, MAX_LOGGED_BYTES, MAX_PAUSE_S
from gateway.cli.stdio.remote_endpoint import BridgedEndpoint, BridgedSession, is_stream, read_body
from gateway.cli.stdio.remote_messages import LIST_CHANGES, failure_response, one_line, read_remote, refusal_of
from gateway.cli.stdio.running import run
from gateway.errors import BadInput
from gateway.protocol.stdio.limits import DRAIN_S
from gateway.protocol.stdio.messages import INVALID_REQUEST, Message, Refused, cancelled_by, id_of, parse_line
from gateway.protocol.stdio.open_requests import OpenRequests
from gateway.protocol.stdio.streams import ClaimedStreams, ClientGone, Oversized, StdioStreams

_FINAL_STATUSES: Final = frozenset({400, 404, 405})
"""Statuses after which the standalone stream is not opened again in its session."""
_LISTEN: Final = "subscriptions/listen"


def serve_bridge(claimed: ClaimedStreams, url: str | None) -> None:
    """Forward messages until the client closes standard input.

    Raises:
        Failure: the URL or the key cannot be used; nothing was sent.
    """
    target = chosen_mcp_url(url)
    key = tenant_key(target)
    run(claimed, lambda streams: Bridge(target, key, streams).serve())


class Bridge:
    """Forwards the messages of one client to one MCP URL, and the responses back."""

    def __init__(self, url: str, key: str, streams: StdioStreams) -> None:
        self._streams = streams
        self._remote = BridgedEndpoint(url, key, renewed=self._follow_renewed)
        self._open = OpenRequests[Exchange]()

    async def serve(self) -> None:
        """Forward messages until standard input ends, wait up to 10 s for open requests, and end the session."""
        async with self._remote:
            try:
                async with anyio.create_task_group() as group:
                    self._group = group
                    with suppress(ClientGone):
                        await self._receive(group)
                    group.cancel_scope.cancel()
            finally:
                with anyio.move_on_after(END_SESSION_S, shield=True), suppress(httpx.HTTPError):
                    await self._remote.end_session()

    async def _receive(self, group: TaskGroup) -> None:
        async for line in self._streams.lines():
            try:
                await self._take(parse_line(line), line, group)
            except Refused as refused:
                await self._streams.write(refused.response)
        for exchange in self._open:
            if exchange.message["method"] == _LISTEN:  # the stream does not end by itself
                exchange.scope.cancel()
        with anyio.move_on_after(0 if self._streams.is_gone else DRAIN_S):
            await self._open.wait_empty()

    async def _take(self, message: Message, line: bytes | Oversized, group: TaskGroup) -> None:
        """Start a request; forward any other message before the next line is read.

        Raises:
            Refused: the request cannot run now.
        """
        text = line if isinstance(line, bytes) else b""
        request_id = id_of(message)
        if request_id is None:
            await self._cancel_or_notify(message, text)
            return
        exchange = Exchange(request_id, message, text, self._remote, self._streams.write)
        is_handshake = message["method"] == "initialize" and not exchange.is_modern
        if is_handshake and self._remote.session is not None:
            raise Refused(INVALID_REQUEST, "this connection is initialized already", BadInput.code, request_id)
        self._open.add(message, exchange)
        if is_handshake:
            await self._initialize(exchange)  # later messages belong to its session
        else:
            group.start_soon(self._run, exchange)

    async def _run(self, exchange: Exchange) -> None:
        try:
            with suppress(ClientGone):  # the reader detects it as well
                try:
                    await exchange.run()
                except ClientGone:
                    raise
                except Exception as error:
                    _log(f"unexpected {type(error).__name__}: {error}")
                    await self._streams.write(failure_response(error, exchange.id))
        finally:
            self._open.remove(exchange.id)

    async def _initialize(self, exchange: Exchange) -> None:
        try:
            status, response = await self._remote.initialize(exchange.message, exchange.line)
            found = read_remote(response)
            if found is None or not found.is_response_to(exchange.id):
                _log(f"initialize was refused with HTTP {status}")
                response = refusal_of(status, response, exchange.id)
        except FAILURES as error:
            _log(f"initialize failed: {error or type(error).__name__}")
            response = failure_response(error, exchange.id)
        finally:
            self._open.remove(exchange.id)
        await self._streams.write(response)

    async def _cancel_or_notify(self, message: Message, line: bytes) -> None:
        """Cancel a request of 2026-07-28; forward any other notification or response."""
        cancelled = self._open.find(cancelled_by(message))
        if cancelled is not None and cancelled.is_modern:
            cancelled.scope.cancel()
            return
        if cancelled is not None:
            cancelled.is_cancelled = True
        try:
            async with self._remote.post(message, line) as http_response:
                body = await read_body(http_response)
        except FAILURES as error:
            _log(f"a message was not delivered: {error or type(error).__name__}")
            return
        if not http_response.is_success:
            reason = body[:MAX_LOGGED_BYTES].decode(errors="replace")
            _log(f"a message was refused with HTTP {http_response.status_code}: {reason}")
        elif message.get("method") == "notifications/initialized" and self._remote.session is not None:
            self._group.start_soon(self._follow, self._remote.session)

    async def _follow_renewed(self, session: BridgedSession) -> None:
        """Follow a session that replaces an expired one, and report all lists as changed, as changes may be missed."""
        self._group.start_soon(self._follow, session)
        for family in session.lists:
            if family in LIST_CHANGES:
                await self._streams.write(LIST_CHANGES[family])

    async def _follow(self, session: BridgedSession) -> None:
        """Forward the standalone stream of a session until the session ends; a broken stream is resumed after its last
        event.
        """
        last_event: str | None = None
        pause_s = FIRST_PAUSE_S
        while self._remote.session is session:
            with suppress(*FAILURES):
                async with self._remote.get(session, last_event) as http_response:
                    if http_response.status_code in _FINAL_STATUSES:  # the next request renews an expired session
                        return
                    if is_stream(http_response):
                        async for event in read_events(http_response.aiter_bytes()):
                            last_event, pause_s = event.id or last_event, FIRST_PAUSE_S
                            await self._forward(event.data)
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_PAUSE_S)

    async def _forward(self, text: bytes) -> None:
        found = read_remote(text)
        if found is not None and found.method is not None:  # a response belongs to the stream of its request
            with suppress(ClientGone):
                await self._streams.write(one_line(text))


def _log(text: str) -> None:
    echo(f"gateway: {without_controls(text)}", err=True)
