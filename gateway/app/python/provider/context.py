"""Context of a call at a provider: messages to the client of the call while the function runs."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, cast

from gateway.definitions.typed.functions import CallContext

_T = TypeVar("_T")
ProviderLogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class CallMessages(Protocol):
    """Messages from a provider's function to the client of one call."""

    async def notify(self, method: str, params: Mapping[str, object]) -> None:
        """Send a notification; without a connection it is dropped."""
        ...

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        """Send a request, and return its result object.

        Raises:
            QuestionRefused: the client does not support the request, or did not respond.
        """
        ...


class QuestionRefused(Exception):
    """The client of the call does not support the request, or did not respond in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserReply:
    """The user's reply to a question, and the values of an accepted form."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any]

    @property
    def is_accepted(self) -> bool:
        """True if the user accepted."""
        return self.action == "accept"


class ProviderContext(CallContext):
    """Context of one call, passed to the parameter of this type of a provider's function.

    A plain function runs in a thread, where `context.wait(context.progress(1))` replaces `await`.
    """

    def __init__(self, token: str, messages: CallMessages) -> None:
        self._token = token
        self._messages = messages
        self._loop = asyncio.get_running_loop()
        self._is_over = False

    @property
    def cancelled(self) -> bool:
        """True after the call has ended; a plain function should check this regularly."""
        return self._is_over

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send the client a progress notification."""
        params = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
        await self._messages.notify(
            "notifications/progress", {name: value for name, value in params.items() if value is not None}
        )

    async def log(self, level: ProviderLogLevel, data: object, logger: str | None = None) -> None:
        """Send the client a log message, if it subscribed to that level."""
        params = {"level": level, "data": data, "_meta": self._meta}
        await self._messages.notify("notifications/message", params if logger is None else {**params, "logger": logger})

    async def ask(self, message: str, schema: Mapping[str, object] | None = None) -> UserReply:
        """Ask the user to fill in a form; without a schema, for a plain yes or no.

        Raises:
            QuestionRefused: the client does not support forms, or did not respond in time.
        """
        wanted = schema or {"type": "object", "properties": {}}
        params = {"message": message, "requestedSchema": wanted, "_meta": self._meta}
        response = await self._messages.ask("elicitation/create", params)
        action, content = response.get("action"), response.get("content")
        if action not in {"accept", "decline", "cancel"}:
            raise QuestionRefused("the response has an unknown action")
        values = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
        return UserReply(action=cast("Literal['accept', 'decline', 'cancel']", action), content=values)

    def wait(self, awaitable: Awaitable[_T]) -> _T:
        """Run an awaitable on the event loop from a plain function's thread, and return its result."""
        return asyncio.run_coroutine_threadsafe(_awaited(awaitable), self._loop).result()

    def close(self) -> None:
        """Mark the call as over."""
        self._is_over = True

    @property
    def _meta(self) -> Mapping[str, object]:
        return {"progressToken": self._token}


async def _awaited(awaitable: Awaitable[_T]) -> _T:
    return await awaitable
