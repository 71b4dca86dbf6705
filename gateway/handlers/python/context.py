"""What a Python handler knows of its call and may do during it."""

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from gateway.domain.results import Contents
from gateway.domain.tenancy.principals import Principal
from gateway.errors import HandlerFailed
from gateway.handlers.call_memo import CallMemo
from gateway.handlers.interfaces import Call, LogLevel, Question
from gateway.handlers.python.http_client import HttpClient
from gateway.upstream.client import UpstreamClient

_T = TypeVar("_T")
_ACTIONS = ("accept", "decline", "cancel")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientReply:
    """What the user did with a question, and what was filled in where that was a form and it was accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any]

    @property
    def is_accepted(self) -> bool:
        """Whether the user said yes."""
        return self.action == "accept"


class Context:
    """One call, as the function behind a primitive of code sees it.

    A plain function runs in a thread, where `context.wait(context.progress(0.5))` does what `await` does elsewhere.

    With clients of 2026-07-28 a question ends the request, and the function runs again from its start when the answer
    has come. Questions, `invoke` and `http` requests that were answered before are not made again; whatever else the
    function does before a question is done in each round. A function that asks must let exceptions it does not know
    through, and ask the same questions in the same order for the same answers.
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
        """Sends requests through the gateway's own door: private addresses are refused unless the operator allows."""

    @property
    def tenant(self) -> str:
        """The tenant whose call this is, by its slug."""
        return self._call.principal.slug

    @property
    def principal(self) -> Principal:
        """Who calls."""
        return self._call.principal

    @property
    def correlation_id(self) -> str:
        """What to quote in logs."""
        return self._call.correlation_id

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments, valid by the definition; of a resource template: its variables."""
        return self._arguments

    @property
    def uri(self) -> str | None:
        """The URI that is read; None unless this is a resource."""
        return self._uri

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more; a plain function should look now and then."""
        return self._is_over

    def can(self, kind: str) -> bool:
        """Whether the client says that it can be asked this: `elicitation`, `elicitation.url`, `sampling`, `roots`."""
        return self._call.peer.can(kind)

    async def end_stream(self) -> None:
        """End the stream on which this call tells and asks; the client of a session comes back for the rest.

        Nothing happens where the client cannot come back, as in 2026-07-28.
        """
        await self._call.peer.end_stream()

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the call is; each value must be larger than the one before."""
        await self._call.peer.progress(progress, total, message)

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Send the client a log message, if it wants that level."""
        await self._call.peer.log(level, data, logger)

    async def read_resource(self, uri: str) -> Contents:
        """Read another resource as this principal.

        Raises:
            NotFound: there is none, or not for this principal.
            GatewayError: it was refused, or reading failed.
        """
        return await self._call.read_resource(uri)

    async def invoke(self, name: str, arguments: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Call another tool as this principal, through all gates: its result object as the protocol has it.

        Raises:
            NotFound: there is no such tool, or not for this principal.
            GatewayError: it was refused.
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

        Never ask for secrets: the client sees what is filled in.

        Raises:
            CapabilityMissing: the client cannot ask its user.
            ClientSilent: no answer in time, or one that does not match the schema.
            HandlerFailed: the schema is not valid.
        """
        wanted = schema or {"type": "object", "properties": {}}
        answer = await self._ask("elicitation", {"message": message, "requestedSchema": wanted}, key)
        return _reply(answer)

    async def ask_url(self, message: str, url: str, *, key: str | None = None) -> ClientReply:
        """Ask the user to open a page; accepting says that it was opened, not what came of it.

        Raises:
            CapabilityMissing, ClientSilent: as above.
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
        """Ask the client's model; `options` are further members of `sampling/createMessage`.

        Raises:
            CapabilityMissing, ClientSilent: as above.
        """
        params: dict[str, object] = {**(options or {}), "messages": list(messages), "maxTokens": max_tokens}
        if system_prompt is not None:
            params["systemPrompt"] = system_prompt
        return await self._ask("sampling", params, key)

    async def roots(self, *, key: str | None = None) -> Sequence[Mapping[str, Any]]:
        """The folders that the client works on.

        Raises:
            CapabilityMissing, ClientSilent: as above.
        """
        found = (await self._ask("roots", {}, key)).get("roots")
        if not isinstance(found, list):
            raise HandlerFailed("the client did not say what its roots are")
        return cast("list[Mapping[str, Any]]", found)

    def wait(self, awaitable: Awaitable[_T]) -> _T:
        """From a plain function: do this on the event loop and wait for what comes of it.

        Raises:
            HandlerFailed: the call is over.
        """
        if self._is_over:
            if asyncio.iscoroutine(awaitable):
                awaitable.close()
            raise HandlerFailed("the call is over")
        future = asyncio.run_coroutine_threadsafe(_awaited(awaitable), self._loop)
        self._waiting.add(future)
        try:
            if self._is_over:
                future.cancel()
            return future.result()
        except concurrent.futures.CancelledError:
            raise HandlerFailed("the call is over") from None
        finally:
            self._waiting.discard(future)

    def close(self) -> None:
        """The call has ended: what the function still waits for is given up."""
        self._is_over = True
        for future in tuple(self._waiting):
            future.cancel()

    async def _ask(
        self, kind: Literal["elicitation", "sampling", "roots"], params: Mapping[str, object], key: str | None
    ) -> Mapping[str, Any]:
        self._asked += 1
        chosen = key or f"question/{self._asked}"
        answers = await self._call.peer.ask({chosen: Question(kind=kind, params=params)})
        return answers[chosen]


async def _awaited(awaitable: Awaitable[_T]) -> _T:
    return await awaitable


def _reply(answer: Mapping[str, Any]) -> ClientReply:
    action, content = answer.get("action"), answer.get("content")
    if action not in _ACTIONS:
        raise HandlerFailed("the client answered a question in a form that the protocol does not have")
    return ClientReply(action=action, content=cast("dict[str, Any]", content) if isinstance(content, dict) else {})
