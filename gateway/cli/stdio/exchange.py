"""Forwarding of one client request to the remote server: its POST, resumption of broken streams, its response."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import anyio
import httpx

from gateway.cli.stdio.event_stream import RemoteFailed, read_events
from gateway.cli.stdio.remote_endpoint import BridgedEndpoint, RemoteSessionEnded, is_stream, read_body
from gateway.cli.stdio.remote_messages import HEADER_MISMATCH, failure_response, one_line, read_remote, refusal_of
from gateway.protocol.stdio.messages import Message, revision_of
from gateway.protocol.stdio.progress_gap import ProgressGap

FAILURES = (httpx.HTTPError, RemoteFailed, RemoteSessionEnded)
"""Exceptions of the remote server that end one message, but not the bridge."""

_BAD_REQUEST: Final = 400
_NO_CONTENT: Final = 204
_PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Pauses before the attempts to resume a broken stream."""

Write = Callable[[bytes], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Exchange:
    """One request of the client. It receives exactly one response, unless the client cancels it."""

    id: str | int
    message: Message
    line: bytes
    remote: BridgedEndpoint
    write: Write
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    is_cancelled: bool = False
    """True if the client has cancelled the request; no response is sent then."""
    is_answered: bool = False
    _last_event: str | None = None
    _gap: ProgressGap = field(default_factory=ProgressGap)

    @property
    def is_modern(self) -> bool:
        """True for a request of 2026-07-28."""
        return revision_of(self.message) is not None

    async def run(self) -> None:
        """Send the request and forward its messages and response.

        Raises:
            ClientGone: the client has disconnected.
        """
        with self.scope:
            try:
                await self._post()
                if not self.is_answered and not self.is_cancelled:
                    await self._respond(failure_response(RemoteFailed("its stream ended before the response"), self.id))
            except FAILURES as error:
                await self._respond(failure_response(error, self.id))

    async def _post(self) -> None:
        for is_first in (True, False):
            async with self.remote.post(self.message, self.line) as http_response:
                if is_stream(http_response):
                    await self._relay_resumed(http_response)
                    return
                body = await read_body(http_response)
            is_mismatch = http_response.status_code == _BAD_REQUEST and HEADER_MISMATCH in body
            if not (is_first and is_mismatch and await self.remote.learn_schemas(self.message)):
                break
        if http_response.is_success and not body:
            return  # the client cancelled the request
        found = read_remote(body)
        if found is not None and found.is_response_to(self.id):
            await self._respond(one_line(body))
        else:
            await self._respond(refusal_of(http_response.status_code, body, self.id))

    async def _relay_resumed(self, http_response: httpx.Response) -> None:
        """Forward a stream; if it breaks before the response, resume it after its last event.

        Raises:
            httpx.HTTPError: the stream cannot be resumed.
        """
        session = self.remote.session
        broken = await self._relay(http_response)
        for pause_s in _PAUSES_S:
            if self.is_answered or self._last_event is None or session is None or self.is_modern:
                break
            await anyio.sleep(pause_s)
            try:
                async with self.remote.get(session, self._last_event) as resumed:
                    if resumed.status_code == _NO_CONTENT or not is_stream(resumed):
                        return
                    broken = await self._relay(resumed)
            except httpx.TransportError as error:
                broken = error
        if broken is not None and not self.is_answered:
            raise broken

    async def _relay(self, http_response: httpx.Response) -> httpx.TransportError | None:
        """Forward the messages of a stream up to the response; return the error that broke the stream."""
        try:
            async for event in read_events(http_response.aiter_bytes()):
                self._last_event = event.id or self._last_event
                found = read_remote(event.data)
                if found is None:
                    continue
                if found.method is not None:
                    await self.write(one_line(event.data))
                    if found.method == "notifications/progress":
                        self._gap.note()
                elif found.is_response_to(self.id):  # guard: bridge-own-response
                    await self._respond(one_line(event.data))
                    return None
        except httpx.TransportError as error:
            return error
        return None

    async def _respond(self, response: bytes) -> None:
        """Write the response, and record its effect on later requests."""
        if not self.is_answered:
            self.is_answered = True
            self.remote.note(self.message, self.line, response)
            await self._gap.wait()
            await self.write(response)
