"""Context of a Python handler's call: its arguments and principal, and its requests to client, tools and upstreams."""

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from gateway.definitions.typed.functions import CallContext
from gateway.domain.results import Contents
from gateway.domain.tenancy.principals import Principal
from gateway.errors import HandlerFailed
from gateway.handlers.call_memo import CallMemo
from gateway.handlers.interfaces import Call, InputRequest, LogLevel
from gateway.handlers.python.http_client import HttpClient
from gateway.upstream.client import UpstreamClient

_T = TypeVar("_T")
_ACTIONS = ("accept", "decline", "cancel")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientReply:
    """The user's reply to an elicitation: the action, and the values of an accepted form."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any]

    @property
    def is_accepted(self) -> bool:
        """True if the user accepted."""
        return self.action == "accept"


class Context(CallContext):
    """One call, as the function of a Python primitive sees it.

    A plain function runs in a thread, where `context.wait(context.progress(0.5))` replaces `await`.

    With clients of 2026-07-28, a request to the client ends the round, and the function restarts when the response
    arrives. Requests to the client that have a response, completed `invoke` calls and `http` requests with unsafe
    methods are not repeated. Everything else before a request to the client is repeated in each round.

    A function that sends requests to the client must not swallow exceptions it does not know. After the same responses,
    it must repeat the same requests and calls in the same order.
    """

    def __init__(
        self, call: Call, arguments: Mapping[str, Any], *, upstream: UpstreamClient, uri: str | None = None
    ) -> None:
        self._call = call
        self._arguments = arguments
        self._uri = uri
        self._memory = CallMemo(call.peer)
        self._loop = asyncio.get_running_loop()
        self._asked = 0
        self._invoked = 0
        self._is_over = False
        self._waiting: set[concurrent.futures.Future[Any]] = set()
        self.http = HttpClient(upstream, call.principal.tenant, self._memory)
        """Sends requests through the upstream client, which refuses private addresses not allowed by the operator."""

    @property
    def tenant(self) -> str:
        """The slug of the tenant of this call."""
        return self._call.principal.slug

    @property
    def principal(self) -> Principal:
        """The principal of the call."""
        return self._call.principal.without_token()

    @property
    def correlation_id(self) -> str:
        """The correlation id for logs."""
        return self._call.correlation_id

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments, validated against the definition; for a resource template, its variables."""
        return self._arguments

    @property
    def uri(self) -> str | None:
        """The URI to read; None unless the primitive is a resource."""
        return self._uri

    @property
    def cancelled(self) -> bool:
        """True after the call has ended, for example by a timeout; a plain function should check this regularly."""
        return self._is_over

    def can(self, kind: str) -> bool:
        """True if the client declared this capability: `elicitation`, `elicitation.url`, `sampling`, `roots`."""
        return self._call.peer.can(kind)

    async def end_stream(self) -> None:
        """End the stream that carries this call's messages; the client of a session reconnects to resume it.

        Does nothing if the client cannot reconnect, as in 2026-07-28.
        """
        await self._call.peer.end_stream()

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send the client a progress notification; a value that does not increase is dropped."""
        await self._call.peer.progress(progress, total, message)

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Send the client a log message, if it subscribed to that level."""
        await self._call.peer.log(level, data, logger)

    async def read_resource(self, uri: str) -> Contents:
        """Read another resource as this principal.

        Raises:
            NotFound: there is no such resource, or not for this principal.
            GatewayError: the request was refused, or reading failed.
        """
        return await self._call.read_resource(uri)

    async def invoke(self, name: str, arguments: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Call another tool as this principal through the call pipeline; return the protocol's result object.

        Raises:
            NotFound: there is no such tool, or not for this principal.
            GatewayError: the call was refused, or its result in an earlier round was too large to store.
        """
        self._invoked += 1
        key = f"invoke/{self._invoked}"
        given = arguments or {}
        return cast(
            "dict[str, Any]",
            await self._memory.once(key, lambda: self._call.call_tool(name, given, key=key), repeatable=False),
        )

    async def ask(
        self, message: str, schema: Mapping[str, object] | None = None, *, key: str | None = None
    ) -> ClientReply:
        """Ask the user to fill in a form; without a schema, for a plain yes or no.

        Never request secrets: the client receives the entered values.

        Raises:
            CapabilityMissing: the client cannot ask its user.
            ClientSilent: no response arrived in time, or the response does not match the schema.
            HandlerFailed: the schema is invalid, or the response has no known action.
        """
        wanted = schema or {"type": "object", "properties": {}}
        response = await self._ask("elicitation", {"message": message, "requestedSchema": wanted}, key)
        return _reply(response)

    async def ask_url(self, message: str, url: str, *, key: str | None = None) -> ClientReply:
        """Ask the user to open a page. Acceptance means that the page was opened, not that its task was completed.

        Raises:
            CapabilityMissing: the client cannot ask its user.
            ClientSilent: no response arrived in time.
            HandlerFailed: the response has no known action.
        """
        return _reply(await self._ask("elicitation", {"mode": "url", "message": message, "url": url}, key))

    async def sample(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        options: Mapping[str, object] | None = None,
        key: str | None = None,
    ) -> Mapping[str, Any]:
        """Sample the client's model; `options` are further members of `sampling/createMessage`.

        Raises:
            CapabilityMissing: the client offers no sampling.
            ClientSilent: no response arrived in time.
        """
        params: dict[str, object] = {**(options or {}), "messages": list(messages), "maxTokens": max_tokens}
        if system_prompt is not None:
            params["systemPrompt"] = system_prompt
        return await self._ask("sampling", params, key)

    async def roots(self, *, key: str | None = None) -> Sequence[Mapping[str, Any]]:
        """Return the client's roots.

        Raises:
            CapabilityMissing: the client offers no roots.
            ClientSilent: no response arrived in time.
            HandlerFailed: the response contains no list of roots.
        """
        found = (await self._ask("roots", {}, key)).get("roots")
        if not isinstance(found, list):
            raise HandlerFailed("the client did not return its roots")
        return cast("list[Mapping[str, Any]]", found)

    def wait(self, awaitable: Awaitable[_T]) -> _T:
        """Run an awaitable on the event loop from a plain function's thread, and return its result.

        Raises:
            HandlerFailed: the call has ended.
        """
        if self._is_over:
            if asyncio.iscoroutine(awaitable):
                awaitable.close()
            raise HandlerFailed("the call has ended")
        future = asyncio.run_coroutine_threadsafe(_awaited(awaitable), self._loop)
        self._waiting.add(future)
        try:
            if self._is_over:
                future.cancel()
            return future.result()
        except concurrent.futures.CancelledError:
            raise HandlerFailed("the call has ended") from None
        finally:
            self._waiting.discard(future)

    def close(self) -> None:
        """End the context: cancels all pending operations of the function."""
        self._is_over = True
        for future in tuple(self._waiting):
            future.cancel()

    async def _ask(
        self, kind: Literal["elicitation", "sampling", "roots"], params: Mapping[str, object], key: str | None
    ) -> Mapping[str, Any]:
        self._asked += 1
        chosen = key or f"question/{self._asked}"
        answers = await self._call.peer.ask({chosen: InputRequest(kind=kind, params=params)})
        return answers[chosen]


async def _awaited(awaitable: Awaitable[_T]) -> _T:
    return await awaitable


def _reply(response: Mapping[str, Any]) -> ClientReply:
    action, content = response.get("action"), response.get("content")
    if action not in _ACTIONS:
        raise HandlerFailed("the client's response does not have the form that the protocol requires")
    return ClientReply(action=action, content=cast("dict[str, Any]", content) if isinstance(content, dict) else {})
