"""Handlers of primitives of live sources: each call is one request to the source, in the protocol's form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar, cast

import msgspec

from gateway.definitions.excerpts import shorten
from gateway.definitions.live.page_digests import page_digest
from gateway.domain.fairness.large_work import run_large
from gateway.domain.identifiers import LiveSourceId
from gateway.domain.json_text import decode_object
from gateway.domain.live_sources import LiveSource
from gateway.domain.primitives import Family
from gateway.domain.refusals import LiveSourceFailed
from gateway.domain.results import Completions
from gateway.domain.sessions import SessionOwner
from gateway.domain.tenancy.principals import ToolCaller
from gateway.errors import CapabilityMissing
from gateway.handlers.interfaces import Call, InputRequest, InputRequestKind, Peer
from gateway.handlers.limits import MAX_COMPLETIONS
from gateway.handlers.live.limits import MAX_METHOD_LENGTH, TIMEOUT_MARGIN_S
from gateway.handlers.live.results import OwnUris, count_blocks, receive
from gateway.handlers.result_forms import ResultForm
from gateway.upstream.live.interfaces import LiveClient, LiveMethod
from gateway.upstream.live.limits import DEFAULT_TIMEOUT_S

_BLOCK_SIZE = 128
"""Size that a block counts for, whatever it contains: reading one takes about 10 µs."""
_Result = TypeVar("_Result")

_CLIENT_REQUESTS: Final[Mapping[str, InputRequestKind]] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
_METHODS: Final[Mapping[Family, LiveMethod]] = {
    Family.TOOL: "tools/call",
    Family.RESOURCE: "resources/read",
    Family.TEMPLATE: "resources/read",
    Family.PROMPT: "prompts/get",
}


class LiveHandler(msgspec.Struct, frozen=True, kw_only=True):
    """The stored handler of a live primitive: its source, and its name there.

    `page` is the digest of a page whose contents were reviewed.
    """

    source: LiveSourceId
    remote: str
    page: str = ""


decode_live = msgspec.json.Decoder(LiveHandler).decode


def mirrored_schema(definition: bytes) -> object:
    """Return the input schema of a tool that marks arguments for headers (`x-mcp-header`); None for all others."""
    if b'"x-mcp-header"' not in definition:
        return None
    return decode_object(definition).get("inputSchema")


class LiveRequests(Protocol):
    """Sends requests to live sources, regardless of the replica to which they are attached."""

    async def request(
        self, source: LiveSource, method: LiveMethod, params: Mapping[str, object], client: LiveClient
    ) -> Mapping[str, Any]:
        """Return the result object.

        Raises:
            LiveSourceDetached: the source is not attached, or its attachment ended.
            LiveSourceFailed: the source refused the request, or its result is invalid or too large.
            NotFound: the source has no such primitive.
        """
        ...

    async def note_links(self, source: LiveSource, owner: str, uris: Sequence[str]) -> None:
        """Let the owner read resources that no list contains, because a tool of the source has linked to them."""
        ...

    def report(self, source: LiveSource, notices: Sequence[str]) -> None:
        """Show notices about results of the source to the tenant's admins."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTarget:
    """A primitive at its live source: the family, and its remote name. `own` are the URIs of the source.

    `page` is the digest that the contents of a reviewed page have to have.
    """

    requests: LiveRequests
    source: LiveSource
    family: Family
    remote: str
    own: OwnUris
    page: str = ""
    mirrored: object = None
    """The tool's input schema, if it marks arguments for headers."""

    @property
    def limit_s(self) -> float:
        """The time limit of a call; the attachment's own limit ends first, with a better message."""
        stated = self.source.settings.get("timeout_s")
        return (stated if isinstance(stated, int | float) else DEFAULT_TIMEOUT_S) + TIMEOUT_MARGIN_S


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAction(Generic[_Result]):
    """Sends a call to the live source of its primitive."""

    target: LiveTarget
    form: ResultForm[_Result]

    async def run(self, arguments: Mapping[str, object], call: Call, /) -> _Result:
        """Return the source's result in the form of the primitive's family.

        Raises:
            LiveSourceFailed, NotFound: the source returned no result, or a page that differs from the accepted one.
            HandlerFailed: the result does not have the form that the protocol requires.
            InputRequired: the call needs a response from the client first.
            ResultBusy: too many large results are in work.
        """
        target = self.target
        params: dict[str, object]
        if self.form.uri is not None:
            params = {"uri": target.remote if target.family is Family.RESOURCE else self.form.uri}
        else:
            params = {"name": target.remote, "arguments": dict(arguments)}
        method = _METHODS[target.family]
        with call.within(target.limit_s):
            result = await target.requests.request(
                target.source,
                method,
                params,
                CallClient(call.peer, ToolCaller(call.principal, call.action), mirrored=target.mirrored),
            )
        if target.page and page_digest(result) != target.page:  # guard: live-page-pinned
            target.requests.report(target.source, [f"the page {shorten(target.remote)} has changed"])
            raise LiveSourceFailed("the page has changed since it was accepted; an admin has to accept it again")
        tenant, work = call.principal.tenant, _BLOCK_SIZE * count_blocks(result, target.family)
        received = await run_large(tenant, work, receive, result, target.family, target.own)
        if received.notices:
            target.requests.report(target.source, received.notices)
        if received.links:
            owner = link_owner(call.result_owner, call.peer.session)
            await target.requests.note_links(target.source, owner, received.links)
        return await run_large(tenant, work, self.form.of_returned, received.members)


@dataclass(frozen=True, slots=True)
class LiveCompleter:
    """Completes arguments at the live source."""

    target: LiveTarget

    async def complete(self, argument: str, value: str, chosen: Mapping[str, str], call: Call) -> Completions:
        """Return the first 100 values that the source suggests.

        Raises:
            LiveSourceFailed: the source offers no completion for the argument.
        """
        target = self.target
        is_prompt = target.family is Family.PROMPT
        ref = {"type": "ref/prompt", "name": target.remote} if is_prompt else _resource_reference(target.remote)
        params = {
            "ref": ref,
            "argument": {"name": argument, "value": value},
            "context": {"arguments": dict(chosen)},
        }
        client = CallClient(call.peer, ToolCaller(call.principal, call.action))
        with call.within(target.limit_s):
            result = await target.requests.request(target.source, "completion/complete", params, client)
        found = result.get("completion")
        listed = cast("Mapping[str, object]", found).get("values") if isinstance(found, Mapping) else None
        texts = cast("list[object]", listed) if isinstance(listed, list) else []
        values = tuple(value for value in texts if isinstance(value, str))
        return Completions(values=values[:MAX_COMPLETIONS], has_more=len(values) > MAX_COMPLETIONS)


@dataclass(slots=True)
class CallClient:
    """Client interface for the live source that runs a call (`LiveClient`): forwards to the client of the call."""

    peer: Peer
    caller: ToolCaller
    mirrored: object = None
    _request_count: int = field(default=0)

    @property
    def owner(self) -> SessionOwner:
        """The owner of the session at the source: the client's MCP session or, in 2026-07-28, the principal."""
        return SessionOwner(self.caller.principal.subject, self.peer.session)  # guard: live-session-owner

    def can(self, kind: str) -> bool:
        """True if the client declared this capability."""
        return self.peer.can(kind)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Forward a progress notification."""
        await self.peer.progress(progress, total, message)

    async def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Forward a log message."""
        await self.peer.log(cast("Any", level), data, logger)

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        """Forward a request to the client. Requests are numbered, so that a restarted call finds earlier responses."""
        kind = _CLIENT_REQUESTS.get(method)
        if kind is None:
            message = f"the live source sent the request {shorten(method, MAX_METHOD_LENGTH)!r}, which is not forwarded"
            raise CapabilityMissing(message, capability="other")
        self._request_count += 1
        key = f"live:{self._request_count}"
        answers = await self.peer.ask({key: InputRequest(kind=kind, params=params)})
        return answers[key]


def link_owner(result_owner: str, session: str) -> str:
    """The owner of the links that a call returns: the owner of its results, and the client's MCP session."""
    return f"{result_owner} {session}"


def _resource_reference(uri: str) -> dict[str, object]:
    return {"type": "ref/resource", "uri": uri}
