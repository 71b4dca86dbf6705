"""The connection of a provider to its gateway: hello, registration, calls, and reconnects with resume.

`docs/providers.md` describes the protocol. Calls survive a broken connection: their results are sent after the resume.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from gateway.app.python.limits import FIRST_PAUSE_S, MAX_BACKOFF_S, MAX_RECEIVED_BYTES, OPEN_S
from gateway.app.python.provider.context import CallMessages, QuestionRefused
from gateway.errors import BadInput, GatewayError
from gateway.upstream.live.agent import jsonrpc
from gateway.upstream.live.agent.jsonrpc import AgentRequest, AgentResponse

log = logging.getLogger("gateway.provide")

GOING_AWAY: Final = 1001
_SERVICE_RESTART: Final = 1012
_TRY_AGAIN_LATER: Final = 1013
_KEY_ENDED: Final = 4401
_FINAL_CLOSE_CODES: Final = frozenset({1002, 1003, 1007, 1009, 4400, 4409, 4410})
"""Close codes after which a reconnect would fail again."""
_REFUSAL_STATUSES: Final = frozenset({400, 401, 403, 404, 421})
_SCHEMES: Final = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}

Serve = Callable[[str, Mapping[str, Any], str, CallMessages], Awaitable[Mapping[str, object]]]
"""Runs one request: its method, params and id, and the connection for messages during the call."""


class _Fault(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Received(msgspec.Struct):
    """A message of the gateway, limited only in size: the gateway adds members to the client's message."""

    id: str | int | None = None
    method: str | None = None
    params: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    result: object = None
    error: _Fault | None = None


class ProviderRefused(Exception):
    """The gateway refuses this provider; a reconnect would fail again."""


class ProviderLink:
    """One provider's connection, across reconnects; implements `CallMessages`."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        hello: Mapping[str, object],
        offer: Callable[[], Mapping[str, object]],
        serve: Serve,
    ) -> None:
        self._url = url
        self._key = key
        self._hello = hello
        self._offer = offer
        self._serve = serve
        self._socket: ClientConnection | None = None
        self._resume = ""
        self._limit = MAX_RECEIVED_BYTES
        self._sent = 0
        self._revision = 1
        self._sent_revision = 0
        """The revision of the offer that was last sent over this connection."""
        self._registered = 0
        """The revision of the offer that the gateway has confirmed."""
        self._calls: dict[str, asyncio.Task[None]] = {}
        self._unsent: dict[str, str] = {}
        """Results of calls that ended while there was no connection."""
        self._pending_requests: dict[str, asyncio.Future[AgentResponse]] = {}
        self.is_ready = asyncio.Event()
        self.notices: list[str] = []
        """The gateway's reasons for omitted definitions."""

    async def run(self) -> None:
        """Stay connected until cancelled.

        Raises:
            ProviderRefused: the gateway refuses the provider.
        """
        try:
            async with asyncio.TaskGroup() as group:
                await self._keep_connected(group)
        except BaseExceptionGroup as failed:  # a group of one task, because calls do not raise
            raise failed.exceptions[0] from None

    def revise(self) -> None:
        """Record a change of the offer. `renew`, or the gateway's next confirmation or resume, registers it."""
        self._revision += 1

    async def renew(self) -> None:
        """Register the offer unless its current revision was sent; without a connection, the next one registers it."""
        if self._socket is not None and self._sent_revision != self._revision:
            self._sent_revision = self._revision
            await self._try_send(jsonrpc.request("provider/register", self._offer(), message_id=self._sent_revision))

    async def notify(self, method: str, params: Mapping[str, object]) -> None:
        """Send a notification; without a connection it is dropped.

        Raises:
            GatewayError: the message is too large, or breaks another rule of the gateway's parser.
        """
        await self._try_send(self._checked(jsonrpc.request(method, params)))

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        """Send a request to the client of a call, and return the result; see `CallMessages.ask`."""
        self._sent += 1
        request_id = f"q{self._sent}"
        text = self._checked(jsonrpc.request(method, params, message_id=request_id))
        pending: asyncio.Future[AgentResponse] = asyncio.get_running_loop().create_future()
        self._pending_requests[request_id] = pending
        try:
            if not await self._try_send(text):
                raise QuestionRefused("there is no connection to the gateway")
            response = await pending
        finally:
            del self._pending_requests[request_id]
        if response.error is not None or response.members is None:
            raise QuestionRefused(response.error[1] if response.error else "the response is not an object")
        return response.members

    async def _keep_connected(self, group: asyncio.TaskGroup) -> None:
        pause_s, is_key_checked = FIRST_PAUSE_S, False
        try:
            while True:
                code, reason = await self._serve_connection(group)
                if self.is_ready.is_set():
                    pause_s = FIRST_PAUSE_S
                if code in _FINAL_CLOSE_CODES or (code == _KEY_ENDED and is_key_checked):
                    raise ProviderRefused(f"the gateway closed the connection: {code} {reason}")
                is_key_checked = code == _KEY_ENDED
                self.is_ready.clear()
                log.warning("provider_disconnected: %s %s", code, reason)
                if code != _SERVICE_RESTART:
                    await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311  # no secret
                    pause_s = min(2 * pause_s, MAX_BACKOFF_S)
        finally:
            for call in self._calls.values():
                call.cancel()

    async def _serve_connection(self, group: asyncio.TaskGroup) -> tuple[int, str]:
        """Serve one connection until its end; return the close code, or 0, and the reason."""
        headers = {"authorization": f"Bearer {self._key}"}
        opening = connect(  # not through proxies of the environment, which could read the key
            self._url,
            additional_headers=headers,
            compression=None,
            max_size=MAX_RECEIVED_BYTES,
            open_timeout=OPEN_S,
            proxy=None,
        )
        try:
            async with opening as socket:
                try:
                    await self._begin(socket)
                    while True:
                        await self._receive(_read(str(await socket.recv(decode=True))), group)
                except asyncio.CancelledError:
                    await socket.close(GOING_AWAY)  # otherwise the source would wait for a resume
                    raise
        except (msgspec.DecodeError, RecursionError) as error:
            return 0, f"a message of the gateway cannot be read: {error}"
        except ConnectionClosed as closed:
            close = closed.rcvd or closed.sent
            return (close.code, close.reason) if close is not None else (0, "the connection was lost")
        except InvalidStatus as refused:
            status = refused.response.status_code
            if status in _REFUSAL_STATUSES:
                body = (refused.response.body or b"").decode(errors="replace")
                raise ProviderRefused(f"the gateway refused the connection: {status} {body[:500]}") from None
            return 0, f"status {status}"
        except (OSError, TimeoutError, InvalidHandshake) as error:
            return 0, str(error) or type(error).__name__
        finally:
            self._socket = None

    async def _begin(self, socket: ClientConnection) -> None:
        """Send the hello, and the results that the gateway still expects."""
        known = [*self._calls, *self._unsent]
        hello = {**self._hello, "version": 1, "resume": self._resume, "calls": known}
        await socket.send(jsonrpc.request("provider/hello", hello, message_id="hello"))
        response = _read(str(await socket.recv(decode=True)))
        result = response.members if isinstance(response, AgentResponse) else None
        while result is None:
            await socket.recv()  # the close code that follows decides
        self._resume, wanted = result["resume"], set(result["calls"])
        self._limit = result["limits"]["message_bytes"]
        self._socket = socket
        for call_id, call in self._calls.items():
            if call_id not in wanted:
                call.cancel()
        unsent, self._unsent = self._unsent, {}
        for call_id in wanted & unsent.keys():
            await self._finish(call_id, unsent[call_id])
        if not result["resumed"]:
            self._registered = 0
        self._sent_revision = self._registered
        await self._confirm()

    async def _confirm(self) -> None:
        """Register the changes since the confirmed revision; without changes, the provider is ready."""
        if self._registered == self._revision:
            self.is_ready.set()
        else:
            await self.renew()

    async def _receive(self, message: AgentRequest | AgentResponse, group: asyncio.TaskGroup) -> None:
        if isinstance(message, AgentResponse):
            await self._settle(message)
        elif message.method == "notifications/cancelled":
            call = self._calls.get(str(message.params.get("requestId")))
            if call is not None:
                call.cancel()
        elif message.method == "ping":
            await self._try_send(jsonrpc.result(message.id, {}))
        elif isinstance(message.id, str):
            self._calls[message.id] = group.create_task(self._run(message.id, message))

    async def _settle(self, message: AgentResponse) -> None:
        if isinstance(message.id, int) and message.error is not None:
            log.error("offer_refused: %s", message.error[1])
            self.is_ready.clear()  # the pauses before the next connections then grow; each connection registers again
            if self._socket is not None:
                await self._socket.close(_TRY_AGAIN_LATER)
        elif isinstance(message.id, int):
            self._registered = message.id
            notices = (message.members or {}).get("notices", ())
            self.notices = [f"{one['family']} {one['name']}: {one['reason']}" for one in notices]
            for notice in self.notices:
                log.error("definition_refused: %s", notice)
            await self._confirm()
        pending = self._pending_requests.get(str(message.id))
        if pending is not None and not pending.done():
            pending.set_result(message)

    async def _run(self, call_id: str, message: AgentRequest) -> None:
        """Run one call, and send its result unless it is cancelled."""
        try:
            text = await self._response(call_id, message)
        except Exception:
            text = jsonrpc.error_response(call_id, BadInput("the call failed; the log of the program has the reason"))
            log.exception("call_failed: %s", message.method)
        finally:
            del self._calls[call_id]
        await self._finish(call_id, text)

    async def _response(self, call_id: str, message: AgentRequest) -> str:
        try:
            result = await self._serve(message.method, message.params, call_id, self)
            return self._checked(jsonrpc.result(call_id, result))
        except GatewayError as error:
            return self._checked(jsonrpc.error_response(call_id, error))

    def _checked(self, text: str) -> str:
        """Return a message if the gateway will accept it, because a refused message would end the connection
        permanently.

        Raises:
            GatewayError: the message is too large, or breaks another rule of the gateway's parser.
        """
        if len(text.encode()) > self._limit:
            raise BadInput(f"the message has more than {self._limit} bytes")
        jsonrpc.parse(text)
        return text

    async def _finish(self, call_id: str, text: str) -> None:
        if not await self._try_send(text):
            self._unsent[call_id] = text

    async def _try_send(self, text: str) -> bool:
        """Send a message; False without a connection."""
        if self._socket is None:
            return False
        try:
            await self._socket.send(text)
        except ConnectionClosed:
            return False
        return True


def _read(text: str) -> AgentRequest | AgentResponse:
    """Return a message of the gateway.

    Raises:
        msgspec.DecodeError, RecursionError: the text is not a JSON-RPC message.
    """
    message = msgspec.json.decode(text, type=_Received)
    if message.method is not None:
        return AgentRequest(id=message.id, method=message.method, params=message.params, size=len(text))
    error = None if message.error is None else (message.error.code, message.error.message)
    return AgentResponse(id=message.id, result=message.result, error=error)


def socket_url(url: str) -> str:
    """Return the address of the WebSocket below a tenant's URL.

    Raises:
        ValueError: the URL is not a tenant's.
    """
    parts = urlsplit(url)
    path = parts.path.rstrip("/").removesuffix("/mcp").removesuffix("/provide")
    if parts.scheme not in _SCHEMES or not parts.netloc or not path.startswith("/t/"):
        raise ValueError("the URL must be a tenant's, such as https://gateway.example.com/t/acme")
    return f"{_SCHEMES[parts.scheme]}://{parts.netloc}{path}/provide"
