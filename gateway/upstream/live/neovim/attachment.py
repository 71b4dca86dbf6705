"""Attachment to one editor: discovers the user's tools, runs them, and reads and watches the built-in resources.

Every call is one `nvim_exec_lua` of a fixed chunk; names and arguments are its parameters, never Lua text. The plugin
returns at once, and its reply follows in parts, so a tool that does not return blocks no other request of the gateway.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import msgspec

from gateway.domain.fairness.thread_kinds import LARGE_RESULTS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.json_text import load_json, refuse_many_values
from gateway.domain.live_sources import DiscoveredPrimitive, Discovery, LiveSource
from gateway.domain.primitives import Family
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.errors import DocumentTooLarge, EgressDenied, InvalidBody, NotFound
from gateway.upstream.live.interfaces import NO_COMPLETIONS, LiveClient, LiveListener, LiveMethod
from gateway.upstream.live.neovim.limits import (
    DETACH_S,
    INLINE_PARSE_BYTES,
    MAX_ARGUMENT_BYTES,
    MAX_REPLY_BYTES,
    MAX_REPLY_PARTS,
    MAX_RUNNING,
    MAX_SUBSCRIPTIONS,
    MAX_TITLE_LENGTH,
    MAX_VALUES,
)
from gateway.upstream.live.neovim.msgpack_rpc import MsgpackRpc, error_text
from gateway.upstream.live.neovim.resources import EditorResources

CLIENT = "mcp-gateway:"
CHUNK = """
local name = ...
local ok, rpc = pcall(require, "mcp_gateway.rpc")
if not ok then
  return { missing = tostring(rpc) }
end
return rpc[name](select(2, ...))
"""
_METHOD = b"mcp_gateway"
_MAX_SAFE_INTEGER = 2**53
"""Largest magnitude of exact integers in Lua, whose numbers are doubles."""
_TOOL_MEMBERS = ("name", "title", "description", "inputSchema", "annotations")


@dataclass(slots=True)
class _Reply:
    """The received parts of a reply."""

    done: asyncio.Future[str | None]
    """Resolves when the reply is complete, to its fault or None."""
    parts: list[bytes] = field(default_factory=list[bytes])
    size: int = 0


class NeovimAttachment:
    """Implementation of `LiveAttachment` for an editor; the connector opens it."""

    is_local = True

    def __init__(self, source: LiveSource, listener: LiveListener, *, timeout_s: float) -> None:
        self._tenant = source.tenant
        self._listener = listener
        self._timeout_s = timeout_s
        self._resources = EditorResources(source.name)
        self._calls = itertools.count(1)
        self._replies: dict[int, _Reply] = {}
        self._subscribed: set[str] = set()
        self._watching = asyncio.Lock()
        self._title, self._channel = "", 0
        self._missing: str | None = None

    def retire(self) -> None:
        """Do nothing, because all callers share the editor."""

    def open(self, rpc: MsgpackRpc, editor: Mapping[bytes, object], check: Callable[[], Awaitable[None]]) -> None:
        """Start the attachment.

        `editor` is the plugin's description; `check` raises if the address is no longer allowed.
        """
        self._rpc, self._check = rpc, check
        self._missing = cast("str | None", editor.get(b"missing"))
        self._title = cast("str", editor.get(b"title", "Neovim"))
        self._channel = cast("int", editor.get(b"channel", 0))

    async def detach(self) -> None:
        """Remove the attachment's autocommands and running calls from the editor.

        The editor drops unprocessed messages of a closed connection, so the method waits for the response, for at most
        a second.
        """
        if not self._channel:
            return
        # Shielded: a detachment mostly runs because its task is cancelled.
        with anyio.move_on_after(DETACH_S, shield=True), contextlib.suppress(LiveSourceFailed):
            await self._rpc.request("nvim_exec_lua", CHUNK, ["detach", self._channel])

    async def wait_closed(self) -> str:
        """Wait until the connection ends; return the reason."""
        return await asyncio.shield(self._rpc.closed)

    async def discover(self) -> Discovery:
        """List the declared tools, and the built-in resources unless the user disabled them.

        Raises:
            LiveSourceFailed: the editor sent no valid list of tools in time.
        """
        if self._missing is not None:
            notice = f"The plugin mcp_gateway is not installed in the editor: {self._missing}"
            return Discovery(title=self._title, notices=(notice,))
        found = await _parse(self._tenant, await self._ask("discover"))
        tools, notices = found.get("tools"), found.get("notices")
        if not isinstance(tools, list) or not isinstance(notices, list):
            raise _invalid()
        shares = found.get("resources") is True
        read = [_read_tool(tool) for tool in cast("list[object]", tools)]
        return Discovery(
            primitives=[*read, *(self._resources.primitives() if shares else ())],
            title=self._title,
            notices=[str(notice)[: MAX_TITLE_LENGTH * 5] for notice in cast("list[object]", notices)],
            can_subscribe=shares,
        )

    async def request(self, method: LiveMethod, params: Mapping[str, object], client: LiveClient) -> Mapping[str, Any]:
        """Run one request; after a cancellation or timeout, cancel it in the editor as well.

        Raises:
            LiveSourceDetached: the connection ended before the result.
            LiveSourceFailed: no valid result in time, or the editor responded with an error.
            NotFound: the editor has no such primitive.
            EgressDenied: the operator withdrew the permission; the attachment ends.
        """
        await self._check_permission()
        if method == "tools/call":
            return await self._call(params)
        if method == "completion/complete":
            return NO_COMPLETIONS
        name = self._resources.name_of(params.get("uri"))
        if name is None or self._missing is not None:
            raise NotFound("The editor has no such primitive.")
        if method == "resources/read":
            kind, _, number = name.partition("/")
            return self._resources.contents(name, await self._ask("read", kind, *([int(number)] if number else [])))
        if method in {"resources/subscribe", "resources/unsubscribe"}:
            return await self._subscribe(name, wanted=method == "resources/subscribe")
        raise NotFound("The editor has no such primitive.")

    def receive(self, method: bytes, params: Sequence[object]) -> bool:
        """Handle a notification of the plugin; return False if it belongs to no pending request."""
        if method != _METHOD:
            return False
        match params:
            case [b"part", int() as call, bytes() as part] if call in self._replies:
                return _add_part(self._replies[call], part)
            case [b"done", int() as call, fault] if call in self._replies:
                done = self._replies[call].done
                if not done.done():
                    done.set_result(None if fault is None else error_text(fault))
                    return True
            case [b"changed"]:
                self._listener.changed()
            case [b"updated", bytes(name)]:
                self._update(name.decode(errors="replace"))
            case _:
                pass
        return False

    def _update(self, name: str) -> None:
        """Report an update of a subscribed resource; a subscription to the buffer list includes buffer contents."""
        is_text = name.startswith("buffer/") and "buffers" in self._subscribed
        if (is_text or name in self._subscribed) and self._resources.name_of(self._resources.uri_of(name)):
            self._listener.updated(self._resources.uri_of(name))

    async def _check_permission(self) -> None:
        try:
            await self._check()
        except EgressDenied:
            self._rpc.close("the operator no longer allows its address")  # guard: neovim-withdrawn
            raise

    async def _call(self, params: Mapping[str, object]) -> Mapping[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or self._missing is not None:
            raise NotFound("The editor has no such tool.")
        result = await _parse(
            self._tenant, await self._ask("execute", name, _encode({} if arguments is None else arguments))
        )
        if not isinstance(result.get("content"), list):
            raise _invalid()
        return result

    async def _subscribe(self, name: str, *, wanted: bool) -> Mapping[str, Any]:
        async with self._watching:
            names = self._subscribed | {name} if wanted else self._subscribed - {name}
            if len(names) > MAX_SUBSCRIPTIONS:
                raise LiveSourceFailed(f"The editor reports updates of at most {MAX_SUBSCRIPTIONS} resources.")
            await self._within(self._rpc.request("nvim_exec_lua", CHUNK, ["watch", self._channel, sorted(names)]))
            self._subscribed = names
        return {}

    async def _ask(self, function: str, *arguments: object) -> bytes:
        """Call a function of the plugin and return its reply; without a reply, cancel the call in the editor."""
        if len(self._replies) >= MAX_RUNNING:  # guard: neovim-running
            raise LiveSourceFailed(f"The editor has {MAX_RUNNING} requests of the gateway running; retry later.")
        call = next(self._calls)
        reply = self._replies[call] = _Reply(asyncio.get_running_loop().create_future())
        try:
            fault = await self._within(self._run(function, call, arguments, reply))
        except BaseException:
            self._rpc.notify("nvim_exec_lua", CHUNK, ["cancel", self._channel, call])
            raise
        finally:
            del self._replies[call]
        if fault == "not found":
            raise NotFound("The editor has no such primitive.")
        if fault is not None:
            raise LiveSourceFailed(f"The editor responded with an error: {fault}")
        return b"".join(reply.parts)

    async def _run(self, function: str, call: int, arguments: Sequence[object], reply: _Reply) -> str | None:
        await self._rpc.request("nvim_exec_lua", CHUNK, [function, self._channel, call, *arguments])
        ends: list[asyncio.Future[Any]] = [reply.done, self._rpc.closed]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not reply.done.done():
            raise LiveSourceDetached(f"The editor is not attached: {self._rpc.closed.result()}.")
        return reply.done.result()

    async def _within(self, running: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await running
        except TimeoutError:
            raise LiveSourceFailed(
                f"The editor did not respond within {self._timeout_s:g} s. It may wait for a key, or run another tool."
            ) from None


def bounded(text: object) -> str:
    """Return a string of the editor, truncated to `_MAX_TITLE_LENGTH` characters for display."""
    return text.decode(errors="replace")[:MAX_TITLE_LENGTH] if isinstance(text, bytes) else ""


def _add_part(reply: _Reply, part: bytes) -> bool:
    """Store a part; return False if the reply has ended or is too large."""
    if reply.done.done():
        return False
    reply.size += len(part)
    reply.parts.append(part)
    if reply.size > MAX_REPLY_BYTES or len(reply.parts) > MAX_REPLY_PARTS:  # guard: neovim-reply-size
        reply.done.set_result(f"the reply has more than {MAX_REPLY_BYTES} bytes or {MAX_REPLY_PARTS} parts")
        return False
    return True


async def _parse(tenant: TenantId, raw: bytes) -> dict[str, Any]:
    """Parse the JSON object of a reply, with the limits of request bodies."""
    try:
        refuse_many_values(raw, values=MAX_VALUES, containers=MAX_VALUES)
        if len(raw) < INLINE_PARSE_BYTES:
            value = load_json(raw)
        else:
            value = await run_in_thread(LARGE_RESULTS, tenant, load_json, raw)
    except (InvalidBody, DocumentTooLarge) as error:
        raise LiveSourceFailed(f"The editor sent invalid JSON: {error.message}") from None
    if not isinstance(value, dict):
        raise _invalid()
    return cast("dict[str, Any]", value)


def _read_tool(tool: object) -> DiscoveredPrimitive:
    members = cast("dict[str, object]", tool) if isinstance(tool, dict) else {}
    definition = {name: members[name] for name in _TOOL_MEMBERS if members.get(name) not in (None, {})}
    return DiscoveredPrimitive(family=Family.TOOL, name=str(members.get("name", "")), definition=definition)


def _encode(arguments: object) -> str:
    """Encode the arguments as JSON.

    Raises:
        LiveSourceFailed: the arguments are too large, or contain an integer that Lua cannot represent exactly.
    """
    text = msgspec.json.encode(arguments)
    if len(text) > MAX_ARGUMENT_BYTES:
        raise LiveSourceFailed(f"The arguments have more than {MAX_ARGUMENT_BYTES} bytes, the limit of an editor.")
    if _has_inexact(arguments):  # guard: neovim-exact-integers
        raise LiveSourceFailed("The arguments have an integer beyond 2^53, which Lua rounds; send it as a string.")
    return text.decode()


def _has_inexact(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_inexact, cast("Mapping[str, object]", value).values()))
    if isinstance(value, list | tuple):
        return any(map(_has_inexact, cast("Sequence[object]", value)))
    return isinstance(value, int) and abs(value) > _MAX_SAFE_INTEGER


def _invalid() -> LiveSourceFailed:
    return LiveSourceFailed("The editor sent a result that does not have the form that the protocol requires.")
