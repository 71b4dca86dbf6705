"""The MCP URL of a remote server: requests in both eras, and the session of the handshake era.

An expired session is opened again with the client's own `initialize`, once for all requests that find it expired. The
client's subscriptions are repeated, and it is notified that every list may have changed.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio
import httpx
import msgspec

from gateway.cli.client.mcp_endpoint import mirrored_headers
from gateway.cli.input.json_fields import pick, text_at, to_object
from gateway.cli.stdio.event_stream import RemoteFailed, read_events, too_large
from gateway.cli.stdio.limits import CONNECT_S, IDLE_S, MAX_MESSAGE_BYTES, MAX_PAGES, MESSAGE_S, RESPONSE_S
from gateway.cli.stdio.remote_messages import RemoteMessage, object_of, one_line, read_remote, schemas_of
from gateway.domain.http.mcp_requests import ACCEPT, header_value, request_headers
from gateway.protocol.stdio.messages import Message, id_of, revision_of

EVENT_STREAM: Final = "text/event-stream"
_NOT_FOUND: Final = 404
_NAME_MEMBERS: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}
_SESSION_REQUESTS: Final = ("resources/subscribe", "logging/setLevel")
_SESSION_ID: Final = re.compile("[!-~]+")
_INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


class RemoteSessionEnded(Exception):
    """The server has ended the session."""


@dataclass(slots=True, eq=False)
class BridgedSession:
    """A session of the handshake era, with the requests that restore its state in a new session."""

    id: str | None
    revision: str
    handshake: bytes
    lists: tuple[str, ...]
    """The lists whose changes the server announces."""
    settings: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """The client's requests that change the session, by method and URI."""


class BridgedEndpoint:
    """One MCP URL with one key; open it with `async with`."""

    def __init__(self, url: str, key: str, *, renewed: Callable[[BridgedSession], Awaitable[None]]) -> None:
        self._url = url
        self._http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}", "Accept": ACCEPT},
            limits=httpx.Limits(max_connections=None),
            trust_env=False,
            verify=not url.startswith("http://"),  # reading the authorities takes 30 ms
        )
        self._renewed = renewed
        self._renewing = anyio.Lock()
        self.session: BridgedSession | None = None
        self._schemas: dict[str, object] = {}
        """Input schemas of the listed tools that mirror arguments into headers, by tool name."""

    async def __aenter__(self) -> "BridgedEndpoint":
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    @asynccontextmanager
    async def post(self, message: Message, line: bytes) -> AsyncGenerator[httpx.Response]:
        """Send a message and yield its response, whose body is not read; an expired session is renewed once.

        Raises:
            httpx.HTTPError: there is no response.
            RemoteSessionEnded: the session has ended and cannot be renewed.
        """
        session = None if revision_of(message) else self.session
        read_s = MESSAGE_S if id_of(message) is None else RESPONSE_S
        async with self._post(self._headers(message, session), line, read_s) as http_response:
            if http_response.status_code != _NOT_FOUND or session is None or session.id is None:
                yield http_response
                return
        await self.renew(session)
        async with self._post(self._headers(message, self.session), line, read_s) as http_response:
            yield http_response

    @asynccontextmanager
    async def get(self, session: BridgedSession, last_event: str | None) -> AsyncGenerator[httpx.Response]:
        """Open the standalone stream, or resume a stream after an event."""
        headers = {**_session_headers(session), "Accept": EVENT_STREAM}
        headers |= {} if last_event is None else {"Last-Event-ID": last_event}
        timeout = httpx.Timeout(MESSAGE_S, connect=CONNECT_S, read=IDLE_S, pool=None)
        async with self._http.stream("GET", self._url, headers=headers, timeout=timeout) as http_response:
            yield http_response

    async def initialize(self, message: Message, line: bytes) -> tuple[int, bytes]:
        """Open a session; return the HTTP status, and the response to the client or the body of a refusal.

        Raises:
            httpx.HTTPError: there is no response.
            RemoteFailed: the session has an id that no header can have.
        """
        async with self._post(self._headers(message, None), line) as http_response:
            response = await self._first_response(http_response)
            found = read_remote(response)
            if found is not None and found.is_result:
                self.session = _session_of(http_response, found, line)
            return http_response.status_code, response

    async def renew(self, expired: BridgedSession) -> None:
        """Open a session in place of an expired one, unless another request did so already.

        Raises:
            httpx.HTTPError: there is no response.
            RemoteSessionEnded: the server refused the new session.
        """
        async with self._renewing:
            if self.session is not expired:
                return
            await self.initialize({}, expired.handshake)
            if self.session is expired or self.session is None:
                raise RemoteSessionEnded
            self.session.settings |= expired.settings
            for line in (_INITIALIZED, *expired.settings.values()):
                async with self._post(self._headers({}, self.session), line) as http_response:
                    await read_body(http_response)
            await self._renewed(self.session)

    async def end_session(self) -> None:
        """End the session at the server."""
        if self.session is not None and self.session.id is not None:
            await self._http.delete(self._url, headers=_session_headers(self.session), timeout=httpx.Timeout(2.0))

    def note(self, message: Message, line: bytes, response: bytes) -> None:
        """Record the effect of a response on later requests, and on a renewed session."""
        found = read_remote(response)
        if found is None or not found.is_result:
            return
        method, uri = str(message.get("method")), text_at(message, "params", "uri")
        if method == "tools/list":
            self._schemas.update(schemas_of(bytes(found.result)))
        elif self.session is not None and method in _SESSION_REQUESTS:
            self.session.settings[f"{method} {uri}"] = line
        elif self.session is not None and method == "resources/unsubscribe":
            self.session.settings.pop(f"resources/subscribe {uri}", None)

    async def learn_schemas(self, call: Message) -> bool:
        """List the tools to find the mirrored arguments of a call; True if the schema of its tool was found."""
        name, meta = text_at(call, "params", "name"), pick(call, "params", "_meta")
        if name in self._schemas:
            return False
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = {"_meta": meta} | ({} if cursor is None else {"cursor": cursor})
            request: Message = {"jsonrpc": "2.0", "id": "gateway-stdio", "method": "tools/list", "params": params}
            async with self.post(request, msgspec.json.encode(request)) as http_response:
                response = await self._first_response(http_response)
            self.note(request, b"", response)
            found = read_remote(response)
            page = {} if found is None else object_of(found.result)
            cursor = text_at(page, "nextCursor") or None
            if name in self._schemas or cursor is None:
                break
        return name in self._schemas

    def _post(
        self, headers: Mapping[str, str], line: bytes, read_s: float = MESSAGE_S
    ) -> AbstractAsyncContextManager[httpx.Response]:
        timeout = httpx.Timeout(MESSAGE_S, connect=CONNECT_S, read=read_s, pool=None)
        return self._http.stream("POST", self._url, content=line, headers=headers, timeout=timeout)

    def _headers(self, message: Message, session: BridgedSession | None) -> Mapping[str, str]:
        revision = revision_of(message)
        if revision is None:
            return {"Content-Type": "application/json", **({} if session is None else _session_headers(session))}
        method = str(message.get("method"))
        name = pick(message, "params", _NAME_MEMBERS[method]) if method in _NAME_MEMBERS else None
        headers = request_headers(header_value(method), name=name if isinstance(name, str) else None)
        headers["MCP-Protocol-Version"] = header_value(revision)
        if method == "tools/call":
            arguments = to_object(pick(message, "params", "arguments"))
            headers |= mirrored_headers(self._schemas.get(str(name)), arguments)
        return headers

    async def _first_response(self, http_response: httpx.Response) -> bytes:
        """Return the body, or the first response in a stream of events."""
        if not is_stream(http_response):
            return one_line(await read_body(http_response))
        async for event in read_events(http_response.aiter_bytes()):
            found = read_remote(event.data)
            if found is not None and found.method is None:
                return one_line(event.data)
        return b""


def is_stream(http_response: httpx.Response) -> bool:
    """True if the response is a stream of events."""
    return http_response.is_success and http_response.headers.get("Content-Type", "").lower().startswith(EVENT_STREAM)


async def read_body(http_response: httpx.Response) -> bytes:
    """Read a body of bounded size.

    Raises:
        RemoteFailed: the body exceeds the limit of an event.
    """
    body = bytearray()
    chunks: AsyncIterable[bytes] = http_response.aiter_bytes()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_MESSAGE_BYTES:  # guard: stdio-body-bound
            raise too_large()
    return bytes(body)


def _session_headers(session: BridgedSession) -> Mapping[str, str]:
    named = {} if session.id is None else {"Mcp-Session-Id": session.id}
    return {"Content-Type": "application/json", "MCP-Protocol-Version": session.revision, **named}


def _session_of(http_response: httpx.Response, found: RemoteMessage, line: bytes) -> BridgedSession:
    result = object_of(found.result)
    capabilities = to_object(result.get("capabilities"))
    session_id: str | None = http_response.headers.get("Mcp-Session-Id")
    if session_id is not None and _SESSION_ID.fullmatch(session_id) is None:
        raise RemoteFailed("the server sent a session id that is not visible ASCII")
    return BridgedSession(
        id=session_id,
        revision=header_value(text_at(result, "protocolVersion")),
        handshake=line,
        lists=tuple(family for family in capabilities if pick(capabilities, family, "listChanged") is True),
    )
