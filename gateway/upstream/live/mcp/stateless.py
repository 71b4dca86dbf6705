"""Link to a server of revision 2026-07-28, which has no sessions.

The server requests input (elicitation, sampling, roots) by an intermediate result; the gateway then repeats the request
with the client's responses. Closing the response stream cancels a request.

Some servers of both eras request input in sessions only, and refuse it in this revision. `SessionFallback` then takes
the requests of all clients that can be asked.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, cast

from gateway.domain.refusals import LiveSourceFailed
from gateway.upstream.live.interfaces import CAPABILITIES, LiveClient
from gateway.upstream.live.mcp.conversation import QUESTIONS, Conversation, Report, without_meta
from gateway.upstream.live.mcp.endpoint import AuthorizedEndpoint, HttpRefusal, SourceEndpoint
from gateway.upstream.live.mcp.limits import MAX_QUESTIONS, MAX_ROUNDS, MAX_STATE_LENGTH, ROUND_PAUSE_S
from gateway.upstream.live.mcp.messages import (
    METHOD_UNKNOWN,
    Message,
    RemoteRefusal,
    is_object,
    is_response,
    result_of,
    write_message,
)
from gateway.upstream.live.mcp.mirrored_headers import MIRRORED, header_value, mirrored_headers
from gateway.upstream.live.mcp.pages import pages
from gateway.upstream.live.mcp.response_messages import ResponseMessages
from gateway.upstream.live.mcp.session import (
    ALL_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    NOT_OFFERED,
    ServerFacts,
    StreamNotOffered,
    declared,
    title_of,
)
from gateway.upstream.live.mcp.session_fallback import SessionFallback
from gateway.upstream.live.mcp.time_limit import TimeLimit

REVISION = "2026-07-28"
HEADER_MISMATCH = -32020
_META = "io.modelcontextprotocol/"
_NAMES: Mapping[str, str] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_CONNECTION_MEMBERS = frozenset({"resultType", "ttlMs", "cacheScope"})
"""Result members that apply only between gateway and server, and are not forwarded."""
_LIST_CHANGES: Mapping[str, str] = {"tools": "toolsListChanged", "prompts": "promptsListChanged"}


class StatelessLink:
    """Link to one server without sessions."""

    is_local = False

    def __init__(
        self, endpoint: SourceEndpoint, report: Report, fallback: SessionFallback, *, timeout_s: float
    ) -> None:
        self._report = report
        self._fallback = fallback
        self.facts = ServerFacts(revision=REVISION)
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._ids = itertools.count(1)
        self._followed: frozenset[str] = frozenset()
        self._honoured: frozenset[str] = frozenset()
        self._wanted: asyncio.Event = asyncio.Event()
        self._acknowledged: asyncio.Future[dict[str, bool]] = asyncio.get_running_loop().create_future()
        self._has_stream = True
        self._replaced: set[asyncio.Future[None]] = set()
        """Old notification streams, kept open until the server acknowledges the new stream."""
        self._schemas: dict[str, object] = {}
        """Schemas that replace those of the catalog, because the server refused the headers of a call."""

    async def discover(self, limit: TimeLimit) -> None:
        """Send `server/discover`, and store the server's declarations.

        Raises:
            LiveSourceFailed: the server does not speak this revision.
        """
        result = await self._send(await self._endpoint.authorize(), "server/discover", {}, None, limit=limit)
        revisions = result.get("supportedVersions")
        if not isinstance(revisions, list) or REVISION not in revisions:
            raise LiveSourceFailed(f"the server does not support the protocol revision {REVISION}")
        capabilities, meta = result.get("capabilities"), result.get("_meta")
        self.facts = ServerFacts(
            revision=REVISION,
            capabilities=capabilities if is_object(capabilities) else {},
            title=title_of(meta.get(_META + "serverInfo") if is_object(meta) else None),
        )

    async def call(
        self, method: str, params: Mapping[str, object], client: LiveClient | None, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run one request: in a session of the caller, if the server requests input only there."""
        return await self._fallback.call(self._call, method, params, client, limit=limit)

    async def _call(
        self, method: str, params: Mapping[str, object], client: LiveClient | None, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run one request; if the server requires input, repeat the request with it, up to a limit of rounds."""
        plain: dict[str, object] = {name: value for name, value in params.items() if name != "_meta"}
        endpoint = await self._endpoint.authorize(client)
        asked = 0
        for _ in range(MAX_ROUNDS):
            result = await self._send(endpoint, method, plain, client, limit=limit)
            match result.get("resultType", "complete"):
                case "complete":
                    return {name: value for name, value in result.items() if name not in _CONNECTION_MEMBERS}
                case "input_required" if client is not None:
                    questions = _read_questions(result)
                    asked += len(questions)
                    if asked > MAX_QUESTIONS:  # guard: live-question-rounds
                        raise LiveSourceFailed(
                            f"the server sent more than {MAX_QUESTIONS} requests to the client during one request"
                        )
                    plain = {name: value for name, value in params.items() if name != "_meta"}
                    plain |= await _collect_input(questions, result, client, limit)
                case _:
                    raise LiveSourceFailed("the server responded with an unsupported kind of result")
        raise LiveSourceFailed(f"the server required input in more than {MAX_ROUNDS} rounds")

    async def subscribe(self, uri: str, limit: TimeLimit) -> None:
        """Reopen the notification stream with this resource, unless the stream already includes it.

        Raises:
            LiveSourceFailed: the server does not report updates of this resource.
        """
        del limit  # `TimeLimit` cancels this wait
        try:
            while uri not in self._followed & self._honoured:
                if not self._has_stream:
                    raise LiveSourceFailed("the server offers no stream of changes")
                self._followed |= {uri}
                self._wanted.set()
                if not (await asyncio.shield(self._acknowledged)).get(uri, True):
                    raise LiveSourceFailed("the server does not report updates of this resource")
        finally:
            if uri not in self._honoured:
                self._followed -= {uri}

    async def unsubscribe(self, uri: str, limit: TimeLimit) -> None:
        """Remove the resource from the next notification stream; until then, its updates are ignored."""
        del limit
        self._followed -= {uri}

    async def follow(self, opened: Callable[[], None]) -> None:
        """Report changes until the stream ends; reopen it at once if the subscriptions change."""
        first: list[Callable[[], None]] = [opened]

        def opened_first() -> None:
            if first:
                first.pop()()  # called once: reopening for new subscriptions misses no changes

        try:
            while await self._listen_without_refused(opened_first):
                pass
        except (HttpRefusal, RemoteRefusal) as refusal:
            is_unknown = isinstance(refusal, RemoteRefusal) and refusal.number == METHOD_UNKNOWN
            if not is_unknown and (isinstance(refusal, RemoteRefusal) or refusal.status not in NOT_OFFERED):
                raise
            self._has_stream = False
            self._record_acknowledged({})
            raise StreamNotOffered("the server offers no stream of changes") from None
        finally:
            self._honoured = frozenset()
            self._end_replaced()

    async def _listen_without_refused(self, opened: Callable[[], None]) -> bool:
        """Read one stream; if the server refuses it, drop the newly added resources and try again."""
        try:
            return await self._listen(opened)
        except RemoteRefusal as refusal:
            added = self._followed - self._honoured
            if refusal.number == METHOD_UNKNOWN or not added:
                raise
            self._followed -= added
            self._record_acknowledged(dict.fromkeys(added, False))
            return True

    async def _listen(self, opened: Callable[[], None]) -> bool:
        """Read one stream; return True if it must be reopened for changed subscriptions."""
        self._wanted.clear()
        followed = self._followed
        wanted = self._requested_changes(followed)
        if not wanted:
            if not self.facts.has("resources", "subscribe"):
                raise StreamNotOffered("the server declares no changes")
            return await self._wanted.wait()
        reading = asyncio.ensure_future(self._read_changes(wanted, followed, opened))
        restart = asyncio.ensure_future(self._wanted.wait())
        try:
            await asyncio.wait({reading, restart}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reading.result()
                return False
            # kept open until the server acknowledges the new stream, so that no change is missed
            self._replaced.add(reading)
            reading.add_done_callback(self._forget_replaced)
            return True
        finally:
            restart.cancel()
            if reading not in self._replaced:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    async def ping(self) -> None:
        """Send `server/discover`, and end idle sessions."""
        await self._fallback.tidy()
        async with TimeLimit(self._timeout_s) as limit:
            await self._call("server/discover", {}, None, limit)

    async def close(self, *, is_retired: bool) -> None:
        """Forget the sessions of callers; see `McpLink.close`."""
        await self._fallback.close(is_retired=is_retired)

    async def _read_changes(
        self, wanted: Mapping[str, object], followed: frozenset[str], opened: Callable[[], None]
    ) -> None:
        endpoint, number = await self._endpoint.authorize(), next(self._ids)
        with await self._open(
            endpoint, number, "subscriptions/listen", {"notifications": wanted}, client=None
        ) as messages:
            while (message := await messages.read_valid(self._report.skipped)) is not None:
                if message.get("method") == "notifications/subscriptions/acknowledged":
                    if asyncio.current_task() not in self._replaced:
                        opened()
                        self._end_replaced()
                        self._acknowledge(message, followed)
                elif is_response(message):
                    result_of(message)
                    return
                elif "method" in message:
                    self._report(message)

    def _end_replaced(self) -> None:
        for task in self._replaced:
            task.cancel()

    def _forget_replaced(self, task: "asyncio.Future[None]") -> None:
        self._replaced.discard(task)
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved; the new stream reports its own fault

    def _acknowledge(self, message: Message, followed: frozenset[str]) -> None:
        params = message.get("params")
        honoured = params.get("notifications") if is_object(params) else None
        uris = honoured.get("resourceSubscriptions") if is_object(honoured) else None
        listed = cast("list[object]", uris) if isinstance(uris, list) else []
        self._honoured = followed & {uri for uri in listed if isinstance(uri, str)}
        self._record_acknowledged({uri: uri in self._honoured for uri in followed})

    def _record_acknowledged(self, honoured: dict[str, bool]) -> None:
        """Wake the pending `subscribe` calls with the server's acknowledgement."""
        self._acknowledged.set_result(honoured)
        self._acknowledged = asyncio.get_running_loop().create_future()

    def _requested_changes(self, followed: frozenset[str]) -> dict[str, object]:
        wanted: dict[str, object] = {
            member: True for family, member in _LIST_CHANGES.items() if self.facts.has(family, "listChanged")
        }
        if self.facts.has("resources", "listChanged"):
            wanted["resourcesListChanged"] = True
        if followed:
            wanted["resourceSubscriptions"] = sorted(followed)
        return wanted

    async def _send(
        self,
        endpoint: AuthorizedEndpoint,
        method: str,
        params: Mapping[str, object],
        client: LiveClient | None,
        *,
        limit: TimeLimit,
    ) -> dict[str, Any]:
        """Send a request. If the server requires arguments in headers, load the tools' schemas and send it again."""
        number = next(self._ids)
        try:
            with await self._open(endpoint, number, method, params, client=client) as messages:
                return await Conversation(
                    messages.read, _refuse_reply, number, client, limit=limit, report=self._report
                ).run()
        except RemoteRefusal as refusal:
            if refusal.number != HEADER_MISMATCH or method != "tools/call":
                raise
        self._schemas = await self._read_schemas(limit)
        number = next(self._ids)
        with await self._open(endpoint, number, method, params, client=client) as messages:
            return await Conversation(
                messages.read, _refuse_reply, number, client, limit=limit, report=self._report
            ).run()

    async def _open(
        self,
        endpoint: AuthorizedEndpoint,
        number: int,
        method: str,
        params: Mapping[str, object],
        *,
        client: LiveClient | None,
    ) -> ResponseMessages:
        capabilities = frozenset(name for name in CAPABILITIES if client.can(name)) if client else ALL_CAPABILITIES
        meta: dict[str, object] = {
            _META + "protocolVersion": REVISION,
            _META + "clientInfo": CLIENT_INFO,
            _META + "clientCapabilities": declared(capabilities),
        }
        if client is not None:
            meta |= {"progressToken": number, _META + "logLevel": LOG_LEVEL}
        headers = [("MCP-Protocol-Version", REVISION), ("Mcp-Method", method)]
        name = params.get(_NAMES.get(method, ""))
        if isinstance(name, str):
            headers.append(("Mcp-Name", header_value(name)))
            if method == "tools/call":
                schema = self._schemas.get(name, client.mirrored if client is not None else None)
                headers += mirrored_headers(schema, params.get("arguments"))
        body = write_message(id=number, method=method, params={**params, "_meta": meta})
        return ResponseMessages(endpoint, await endpoint.open("POST", tuple(headers), body))

    async def _read_schemas(self, limit: TimeLimit) -> dict[str, object]:
        """Return the input schemas of the tools that take arguments in headers."""
        async with aclosing(pages(self, "tools/list", limit)) as listed:
            return {
                str(tool.get("name")): tool.get("inputSchema")
                async for page in listed
                for tool in filter(is_object, page)
                if MIRRORED in str(tool.get("inputSchema"))
            }


async def _refuse_reply(members: Mapping[str, object]) -> None:
    raise LiveSourceFailed("the server sent a request, which this protocol revision does not permit")


def _read_questions(result: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the input requests of a result by key; empty if the result has only a state.

    Raises:
        LiveSourceFailed: a requested kind of input is not supported.
    """
    questions = result.get("inputRequests", {})
    if not is_object(questions) or not questions.keys() | {"requestState"} & result.keys():
        raise LiveSourceFailed("the server requires input without naming it")
    for question in questions.values():
        if not is_object(question) or question.get("method") not in QUESTIONS:
            raise LiveSourceFailed("the server requires a kind of input that is not supported")
    return questions


async def _collect_input(
    questions: Mapping[str, Mapping[str, Any]], result: Mapping[str, Any], client: LiveClient, limit: TimeLimit
) -> dict[str, object]:
    """Return the additional members of the repeated request: the client's responses, and the server's state."""
    added: dict[str, object] = {}
    if questions:
        limit.pause()
        answers: dict[str, object] = {}
        for key, question in questions.items():
            params = question.get("params")
            answers[key] = await client.ask(question["method"], without_meta(params) if is_object(params) else {})
        added["inputResponses"] = answers
        limit.resume()
    else:
        await asyncio.sleep(ROUND_PAUSE_S)
    state = result.get("requestState")
    if isinstance(state, str):
        if len(state) > MAX_STATE_LENGTH:
            raise LiveSourceFailed("the server required input with a state that is too large")
        added["requestState"] = state
    return added
