"""Forwarded and dropped parts of a live source's result."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.live_sources import LiveKind, LiveSource
from gateway.domain.primitives import Family
from gateway.domain.refusals import LiveSourceFailed
from gateway.domain.results import Contents, Result
from gateway.domain.sessions import SessionOwner
from gateway.domain.tenancy.principals import ToolCaller
from gateway.errors import CapabilityMissing
from gateway.handlers.interfaces import Call, InputRequest, Peer
from gateway.handlers.live.handlers import CallClient, LiveAction, LiveCompleter, LiveTarget
from gateway.handlers.live.results import OwnUris
from gateway.handlers.null_peer import NULL_PEER
from gateway.handlers.result_forms import PromptForm, ResourceForm, ResultForm, ToolForm
from gateway.upstream.live.interfaces import LiveClient, LiveMethod
from tests.support.handler_bench import ACME
from tests.support.peers import TalkingPeer

NOW = datetime(2026, 11, 23, tzinfo=UTC)
SOURCE = LiveSource(
    tenant=TenantId("ten_acme"),
    id=LiveSourceId("liv_1"),
    name="editor",
    kind=LiveKind.NEOVIM,
    settings={"timeout_s": 3},
    created_at=NOW,
    updated_at=NOW,
)


OWN = OwnUris(source="editor", schemes=frozenset({"note"}), lists=lambda uri: uri == "file:///listed")


class Answering:
    """A live source that always returns the same result."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.result = result
        self.seen: list[tuple[LiveMethod, Mapping[str, object]]] = []
        self.links: list[tuple[str, list[str]]] = []
        self.notices: list[str] = []

    async def request(
        self, source: LiveSource, method: LiveMethod, params: Mapping[str, object], client: LiveClient
    ) -> Mapping[str, Any]:
        assert source is SOURCE
        del client
        self.seen.append((method, params))
        return self.result

    async def note_links(self, source: LiveSource, owner: str, uris: Sequence[str]) -> None:
        assert source is SOURCE
        self.links.append((owner, list(uris)))

    def report(self, source: LiveSource, notices: Sequence[str]) -> None:
        assert source is SOURCE
        self.notices += notices


class Calling:
    """A call without a client."""

    principal = ACME
    action = ("call", "their_name")
    result_owner = "scope ann"

    def __init__(self, peer: Peer = NULL_PEER) -> None:
        self.peer = peer
        self.limits: list[float] = []

    def within(self, seconds: float) -> nullcontext[None]:
        self.limits.append(seconds)
        return nullcontext()


async def run(
    result: Mapping[str, Any], family: Family, form: ResultForm[Any], own: OwnUris = OWN, **arguments: object
) -> tuple[Any, Answering]:
    source, call = Answering(result), Calling()
    target = LiveTarget(requests=source, source=SOURCE, family=family, remote="their-name", own=own)
    found = await LiveAction(target=target, form=form).run(arguments, cast(Call, call))
    assert call.limits == [8.0]
    return found, source


async def test_a_tool_is_called_by_its_name_at_the_source() -> None:
    """DYN-2: the name there comes from the catalog, and the arguments are passed as they are."""
    result: dict[str, Any] = {
        "content": [{"type": "text", "text": "done"}],
        "structuredContent": {"a": 1},
        "resultType": "complete",
    }
    found, source = await run(result, Family.TOOL, ToolForm(), name="another", path="ü")
    assert source.seen == [("tools/call", {"name": "their-name", "arguments": {"name": "another", "path": "ü"}})]
    assert found == Result(content=result["content"], structured={"a": 1})


@pytest.mark.parametrize(("count", "is_inline"), [(9, True), (1000, False)])
async def test_a_result_of_many_blocks_is_read_in_a_thread(count: int, is_inline: bool) -> None:
    """Attack: 50,000 blocks of a tenant's own server take half a second, which no other tenant waits for (ISO-3)."""
    threads = set[threading.Thread]()

    def lists(_: str) -> bool:
        threads.add(threading.current_thread())
        return True

    own = OwnUris(source="editor", lists=lists)
    link = {"type": "resource_link", "uri": "file:///listed", "name": "a"}
    found, source = await run({"content": [link] * count}, Family.TOOL, ToolForm(), own=own)
    assert (threads == {threading.main_thread()}, len(threads)) == (is_inline, 1)
    assert (len(found.content), source.notices) == (count, [])


async def test_a_source_cannot_speak_for_the_gateway() -> None:
    """Attack: `_meta` below `gateway/` is set by the gateway, such as an error's code; a source's is left out."""
    meta = {"gateway/error": {"code": "policy.denied"}, "error": {"code": "EXECUTION_ERROR", "data": [1]}}
    found, _ = await run({"content": [], "isError": True, "_meta": meta}, Family.TOOL, ToolForm())
    assert found.is_error
    assert found.meta == {"error": {"code": "EXECUTION_ERROR", "data": [1]}}


@pytest.mark.parametrize("result", [{}, {"structuredContent": {}}, {"isError": True}, {"contents": []}])
async def test_a_result_without_content_is_a_failure(result: Mapping[str, Any]) -> None:
    """Attack: a value that is no tool result is never shown as a success."""
    with pytest.raises(LiveSourceFailed, match="content"):
        await run(result, Family.TOOL, ToolForm())


async def test_resources_and_prompts_have_their_own_requests() -> None:
    """DYN-1: a resource is read by its URI, a prompt is got by its name."""
    contents = [{"uri": "note://1", "text": "x"}]
    read, source = await run({"contents": contents, "ttlMs": 5}, Family.RESOURCE, ResourceForm("note://1"))
    assert source.seen == [("resources/read", {"uri": "their-name"})]
    assert read == Contents(contents=tuple(contents))
    messages = [{"role": "user", "content": {"type": "text", "text": "hi"}}]
    got, source = await run({"messages": messages}, Family.PROMPT, PromptForm(None), who="me")
    assert source.seen == [("prompts/get", {"name": "their-name", "arguments": {"who": "me"}})]
    assert list(got.messages) == messages


@pytest.mark.parametrize("session", ["", "a-session"])
def test_a_request_is_in_the_session_of_its_caller(session: str) -> None:
    """DYN-5: that of the client's MCP session; in 2026-07-28, which has none, that of the principal."""
    client = CallClient(TalkingPeer(session=session), ToolCaller(ACME, ("call", "x")))
    assert client.owner == SessionOwner(ACME.subject, session)


async def test_completions_are_texts() -> None:
    """Attack: values of other types are left out, and there are at most a hundred."""
    source = Answering({"completion": {"values": ["a", 1, None, *(str(number) for number in range(200))]}})
    target = LiveTarget(requests=source, source=SOURCE, family=Family.TEMPLATE, remote="note://{id}", own=OWN)
    found = await LiveCompleter(target).complete("id", "a", {"b": "c"}, cast(Call, Calling()))
    assert len(found.values) == 100
    assert found.values[:2] == ("a", "0")
    assert source.seen[0][1]["ref"] == {"type": "ref/resource", "uri": "note://{id}"}
    odd_results: list[dict[str, Any]] = [{}, {"completion": None}, {"completion": {"values": {}}}]
    for odd in odd_results:
        other = LiveTarget(requests=Answering(odd), source=SOURCE, family=Family.PROMPT, remote="p", own=OWN)
        assert (await LiveCompleter(other).complete("id", "a", {}, cast(Call, Calling()))).values == ()


class Recalling:
    """A client that answers by the number of its question."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, input_requests: Mapping[str, InputRequest]) -> Mapping[str, Mapping[str, Any]]:
        self.asked += [f"{key} {question.kind}" for key, question in input_requests.items()]
        return {key: {"action": "accept"} for key in input_requests}


async def test_questions_are_numbered_and_of_known_kinds() -> None:
    """DYN-5: a call that is run again finds the answers of its questions by their order."""
    peer = Recalling()
    client = CallClient(cast(Peer, peer), ToolCaller(ACME, ("call", "t")))
    await client.ask("elicitation/create", {"message": "?"})
    await client.ask("roots/list", {})
    assert peer.asked == ["live:1 elicitation", "live:2 roots"]
    with pytest.raises(CapabilityMissing, match="tools/call"):
        await client.ask("tools/call\x00", {})
