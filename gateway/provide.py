"""The client for programs that offer primitives: functions become tools, resources and prompts of a tenant.

The program connects to the gateway, so it needs no open port. `docs/providers.md` is the guide.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from gateway.app.python.provider.context import (
    CallMessages,
    ProviderContext,
    ProviderLogLevel,
    QuestionRefused,
    UserReply,
)
from gateway.app.python.provider.link import ProviderLink, ProviderRefused, socket_url
from gateway.app.python.typed_results import prompt_result, resource_result, tool_result
from gateway.definitions.typed.definitions import ToolHints, ToolShape
from gateway.definitions.typed.functions import SignatureMismatch, read_function
from gateway.domain.results import Result
from gateway.errors import NotFound
from gateway.handlers.python.results import audio, embed, error, image, json, success, text

__all__ = (
    "Provider",
    "ProviderContext",
    "ProviderLogLevel",
    "ProviderRefused",
    "QuestionRefused",
    "Result",
    "UserReply",
    "audio",
    "embed",
    "error",
    "image",
    "json",
    "success",
    "text",
)

_F = TypeVar("_F", bound=Callable[..., object])
_VARIABLE = re.compile(r"\\{[^{}]*\\}")
_Run = Callable[[Mapping[str, Any], ProviderContext], Awaitable[Mapping[str, object]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offered:
    """One primitive: its definition, and the function that runs one request."""

    definition: Mapping[str, object]
    run: _Run


class Provider:
    """The primitives of a program, and its connection to a gateway.

    `url` is the tenant's URL, such as `https://gateway.example.com/t/acme`. `source` names the program among the
    tenant's sources.
    Primitives can be added and removed while the program is connected, from the event loop's thread.
    """

    def __init__(self, url: str, key: str, *, source: str, title: str = "") -> None:
        self._tools: dict[str, _Offered] = {}
        self._resources: dict[str, _Offered] = {}
        self._templates: dict[str, _Offered] = {}
        self._prompts: dict[str, _Offered] = {}
        self._running: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None
        hello = {"source": source, "title": title, "subscriptions": True}
        self._link = ProviderLink(socket_url(url), key, hello=hello, offer=self._definitions, serve=self._serve)

    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolHints | None = None,
    ) -> Callable[[_F], _F]:
        """Offer the decorated function as a tool.

        Its name, docstring and signature are the definition. Each parameter needs a type that JSON can represent. A
        parameter of the type `ProviderContext` receives the context. The function may return a `Result`, text, None,
        or any value that JSON can represent.

        Raises:
            TypeError: a parameter has no name, or a type without a JSON Schema.
        """

        def decorate(function: _F) -> _F:
            read = read_function(function, ProviderContext)

            async def run(params: Mapping[str, Any], context: ProviderContext) -> Mapping[str, object]:
                try:
                    return tool_result(await read.run(params.get("arguments") or {}, context))
                except SignatureMismatch as invalid:
                    return tool_result(error("ARGUMENTS_INVALID", str(invalid)))

            definition = read.tool_definition(name, title=title, description=description, annotations=annotations)
            self._add(self._tools, definition["name"], definition, run)
            return function

        return decorate

    def add_tool(
        self,
        definition: ToolShape,
        handler: Callable[[Mapping[str, Any], ProviderContext], Awaitable[object]],
    ) -> None:
        """Offer a tool with an explicit definition; the handler receives the arguments as an object."""

        async def run(params: Mapping[str, Any], context: ProviderContext) -> Mapping[str, object]:
            return tool_result(await handler(params.get("arguments") or {}, context))

        self._add(self._tools, definition.get("name", ""), cast("Mapping[str, object]", definition), run)

    def resource(
        self, uri: str, *, name: str | None = None, description: str | None = None, mime_type: str = "text/plain"
    ) -> Callable[[_F], _F]:
        """Offer the decorated function, whose only parameter may be a context, as the content of a resource.

        The function may return text, bytes, or any value that JSON can represent. For a template such as
        `notes://{day}`, it has the parameter `uri`.
        """
        is_template = "{" in uri

        def decorate(function: _F) -> _F:
            read = read_function(function, ProviderContext)

            async def run(params: Mapping[str, Any], context: ProviderContext) -> Mapping[str, object]:
                asked = str(params["uri"])
                returned = await read.run({"uri": asked} if is_template else {}, context)
                return resource_result(returned, uri=asked, mime_type=mime_type)

            definition = read.resource_definition(uri, name, description=description, mime_type=mime_type)
            self._add(self._templates if is_template else self._resources, uri, definition, run)
            return function

        return decorate

    def prompt(self, name: str | None = None, *, description: str | None = None) -> Callable[[_F], _F]:
        """Offer the decorated function as a prompt; its parameters are strings.

        The function may return the text of one user message, or a list of messages.
        """

        def decorate(function: _F) -> _F:
            read = read_function(function, ProviderContext)

            async def run(params: Mapping[str, Any], context: ProviderContext) -> Mapping[str, object]:
                return prompt_result(await read.run(params.get("arguments") or {}, context))

            definition = read.prompt_definition(name, description=description)
            self._add(self._prompts, definition["name"], definition, run)
            return function

        return decorate

    def remove(self, name: str) -> None:
        """Remove the tools and prompts with this name, and the resources with this URI or template.

        Raises:
            KeyError: nothing of this name is offered.
        """
        found = [offered for offered in self._families.values() if offered.pop(name, None) is not None]
        if not found:
            raise KeyError(name)
        self._renew()

    async def updated(self, uri: str) -> None:
        """Notify clients that a resource has changed."""
        await self._link.notify("notifications/resources/updated", {"uri": uri})

    @property
    def notices(self) -> Sequence[str]:
        """The gateway's reasons for omitted definitions, from the last registration."""
        return tuple(self._link.notices)

    async def serve(self) -> None:
        """Stay connected until cancelled; reconnect after a broken connection.

        Raises:
            ProviderRefused: the gateway refuses the key, the name of the source or the protocol.
        """
        await self._link.run()

    def run(self) -> None:
        """Serve from a program that has no running event loop, until it is interrupted; see `serve`."""
        with suppress(KeyboardInterrupt):
            asyncio.run(self.serve())

    async def __aenter__(self) -> Self:
        """Connect, and return when the gateway has registered the primitives.

        Raises:
            ProviderRefused: as in `serve`.
        """
        self._running = asyncio.ensure_future(self.serve())
        ready = asyncio.ensure_future(self._link.is_ready.wait())
        try:
            await asyncio.wait({self._running, ready}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
            if not self._link.is_ready.is_set():
                self._running.cancel()
        if self._running.done():
            await self._running
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection.

        Raises:
            ProviderRefused: the gateway refused the provider during the block, and the block raised nothing itself.
        """
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
            if kind is None and not self._running.cancelled():
                self._running.result()

    @property
    def _families(self) -> Mapping[str, dict[str, _Offered]]:
        return {
            "tools": self._tools,
            "resources": self._resources,
            "resourceTemplates": self._templates,
            "prompts": self._prompts,
        }

    def _definitions(self) -> Mapping[str, object]:
        return {
            listed: [one.definition for one in offered.values()]
            for listed, offered in self._families.items()
            if offered
        }

    def _add(self, offered: dict[str, _Offered], name: str, definition: Mapping[str, object], run: _Run) -> None:
        offered[name] = _Offered(definition=definition, run=run)
        self._renew()

    def _renew(self) -> None:
        """Register again, once for all changes of one turn of the event loop; during a reconnect, afterwards."""
        self._link.revise()
        if self._link.is_ready.is_set() and (self._renewing is None or self._renewing.done()):
            self._renewing = asyncio.ensure_future(self._link.renew())

    async def _serve(
        self, method: str, params: Mapping[str, Any], call_id: str, messages: CallMessages
    ) -> Mapping[str, object]:
        if method in {"resources/subscribe", "resources/unsubscribe"}:
            return {}
        offered = self._find(method, params)
        if offered is None:
            raise NotFound(f"no handler is registered for {method}")
        context = ProviderContext(call_id, messages)
        try:
            return await offered.run(params, context)
        finally:
            context.close()

    def _find(self, method: str, params: Mapping[str, Any]) -> _Offered | None:
        match method:
            case "tools/call":
                return self._tools.get(str(params.get("name")))
            case "prompts/get":
                return self._prompts.get(str(params.get("name")))
            case "resources/read":
                uri = str(params.get("uri"))
                matching = (one for template, one in self._templates.items() if _matches(template, uri))
                return self._resources.get(uri) or next(matching, None)
            case _:
                return None


def _matches(template: str, uri: str) -> bool:
    """True if the template can produce the URI; the gateway has matched it exactly."""
    return re.fullmatch(_VARIABLE.sub(".*", re.escape(template)), uri) is not None
