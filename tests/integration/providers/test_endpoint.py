"""The endpoint of providers over real sockets: offers, calls, resume, takeover and the end of keys (DYN-4)."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
from websockets.exceptions import InvalidStatus

from gateway.domain.identifiers import TenantId
from gateway.domain.live_sources import DiscoveredPrimitive, LiveSource
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.domain.tenancy.keys import Scope
from gateway.errors import ClientSilent, LimitExceeded, NotFound
from gateway.upstream.live.agent import attachment as attachments
from gateway.upstream.live.agent.attachment import AgentAttachment
from gateway.upstream.live.interfaces import LiveAttachment, LiveListener
from tests.support.providers import PATIENCE_S, TOOL, ProviderStand, RecordingClient
from tests.support.replicas import until


def _text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


async def test_tools_are_registered_updated_and_withdrawn(stand: ProviderStand) -> None:
    """Ours: the offer follows the provider's messages, and each change is announced (DYN-4)."""
    async with stand.connect(stand.keys.make("acme")) as provider:
        hello = await provider.hello(title="Anna's laptop")
        attachment = stand.sources.find("laptop")

        async def names() -> list[str]:
            return [primitive.name for primitive in (await attachment.discover()).primitives]

        assert hello["resumed"] is False
        assert hello["heartbeat_s"] == 20
        first = await provider.request("provider/register", tools=[TOOL, {**TOOL, "name": "load"}])
        assert first["result"] == {"primitives": 2, "notices": []}
        assert await names() == ["save", "load"]
        await provider.request("provider/update", tools=[{**TOOL, "description": "Better."}], prompts=[{"name": "p"}])
        found = await attachment.discover()
        assert [p.name for p in found.primitives] == ["save", "load", "p"]
        assert found.primitives[0].definition["description"] == "Better."
        assert found.title == "Anna's laptop"
        gone = await provider.request("provider/withdraw", tools=["save", "nothing"])
        assert gone["result"]["notices"] == [{"family": "tool", "name": "nothing", "reason": "not registered"}]
        assert await names() == ["load", "p"]
        await provider.request("provider/register", tools=[TOOL])
        assert await names() == ["save"]
        assert stand.sources.changes["laptop"] == 4


async def test_one_bad_definition_costs_one(stand: ProviderStand) -> None:
    """Ours: each bad definition has a notice, the others are registered (DYN-2)."""
    bad: list[object] = [{"name": "undescribed"}, "text", {"description": "unnamed"}, {"name": 7}, TOOL]
    async with stand.connect(stand.keys.make("acme")) as provider:
        await provider.hello()
        answer = await provider.request("provider/register", tools=[TOOL, *bad], resources="none")
        found = await stand.sources.find("laptop").discover()

    assert [notice["name"] for notice in answer["result"]["notices"]] == ["undescribed", "", "", "", "save"]
    assert answer["result"]["notices"][4]["reason"] == "defined twice in one message"
    assert [primitive.name for primitive in found.primitives] == ["save"]
    assert any("undescribed" in notice for notice in found.notices)


async def test_a_check_that_is_refused_changes_nothing(stand: ProviderStand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: while a tenant's checks take too long, the message is refused and the earlier offer stays (TEN-5)."""
    check, costly = stand.sources.check, list[object]()

    async def refuse(tenant: TenantId, primitives: Sequence[DiscoveredPrimitive]) -> Sequence[str | None]:
        if costly:
            raise LimitExceeded("too costly", retry_after_s=1)
        return await check(tenant, primitives)

    monkeypatch.setattr(stand.sources, "check", refuse)
    async with stand.attached() as (provider, attachment):
        costly.append(True)
        answer = await provider.request("provider/register", tools=[{**TOOL, "name": "other"}])
        assert answer["error"]["message"] == "too costly"
        assert (await provider.request("ping"))["result"] == {}
        assert [one.name for one in (await attachment.discover()).primitives] == ["save"]


@pytest.mark.parametrize("failure", [RuntimeError("generator didn't yield"), LiveSourceFailed("interrupted"), None])
async def test_a_hello_fails_when_its_attachment_is_not_served(
    stand: ProviderStand, monkeypatch: pytest.MonkeyPatch, failure: Exception | None
) -> None:
    """Ours: a program that nothing serves learns it, and connects again; it is not left connected (DYN-4)."""
    offer = stand.sources.offer

    @asynccontextmanager
    async def interrupted(source: LiveSource, attachment: LiveAttachment) -> AsyncGenerator[LiveListener]:
        if failure is not None:
            raise failure
        cast("AgentAttachment", attachment).end("ended meanwhile")
        async with offer(source, attachment) as listener:
            yield listener

    monkeypatch.setattr(stand.sources, "offer", interrupted)
    key = stand.keys.make("acme")
    async with stand.connect(key) as provider:
        answer = await provider.hello()
        assert answer["error"]["data"] == {"code": "live_source.failed"}
        assert (await provider.closed())[0] == 1011
    monkeypatch.setattr(stand.sources, "offer", offer)
    async with stand.attached(key=key) as (_, attachment):
        assert (await attachment.discover()).primitives


async def test_a_call_has_progress_logs_questions_and_a_result(stand: ProviderStand) -> None:
    """MCP: progress, log messages and questions belong to the call whose token they have (DYN-4)."""
    client, results = RecordingClient(), list[object]()
    async with stand.attached() as (provider, attachment), anyio.create_task_group() as group:

        async def call() -> None:
            results.append(await attachment.request("tools/call", {"name": "save", "arguments": {"a": 1}}, client))

        group.start_soon(call)
        request = await provider.receive()
        token = request["params"]["_meta"]["progressToken"]
        assert (request["method"], request["id"]) == ("tools/call", token)
        assert request["params"]["arguments"] == {"a": 1}
        about = {"_meta": {"progressToken": token}}
        await provider.send(method="notifications/progress", params={"progressToken": token, "progress": 1, "total": 2})
        await provider.send(method="notifications/progress", params={"progressToken": "c99", "progress": 9})
        await provider.send(method="notifications/progress", params={"progressToken": token, "progress": "much"})
        await provider.send(method="notifications/message", params={"level": "info", "data": [1], **about})
        await provider.send(method="notifications/message", params={"level": "loud", "data": [2], **about})
        answer = await provider.request("elicitation/create", message="sure?", **about)
        assert answer["result"] == {"action": "accept", "content": {}}
        client.answer = ClientSilent("no answer in time")
        answer = await provider.request("elicitation/create", message="sure?", **about)
        assert answer["error"]["data"] == {"code": "call.client_silent"}
        await provider.send(id=token, result=_text("done"))

    assert results == [_text("done")]
    assert client.received == [
        ("progress", 1, 2, None),
        ("log", "info", [1], None),
        ("ask", "elicitation/create", {"message": "sure?"}),
        ("ask", "elicitation/create", {"message": "sure?"}),
    ]


class _Thinking(RecordingClient):
    """A client whose user does not answer until the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answered, self.cancelled = asyncio.Event(), asyncio.Event(), 0

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        self.asked.set()
        try:
            await self.answered.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return await super().ask(method, params)


@pytest.mark.parametrize("end", ["result", "gone"])
async def test_the_end_of_a_call_waits_for_no_answer(stand: ProviderStand, end: str) -> None:
    """Ours: the response or the end of the program ends the call at once, and cancels its question (DYN-3, DYN-4)."""
    client = _Thinking()
    async with stand.attached() as (provider, attachment):
        call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, client))
        token = (await provider.receive())["id"]
        for number in range(2):
            await provider.send(
                id=f"q{number}", method="elicitation/create", params={"_meta": {"progressToken": token}}
            )
        with anyio.fail_after(PATIENCE_S):
            await client.asked.wait()
            if end == "result":
                await provider.send(id=token, result=_text("done"))
                assert await call == _text("done")
            else:
                await provider.connection.close()
                with pytest.raises(LiveSourceDetached):
                    await call
    assert (client.cancelled, client.received) == (1, [])


async def test_the_time_of_a_question_is_not_the_calls(stand: ProviderStand) -> None:
    """Ours: a user may think longer than a call may take; afterwards the call's limit goes on (DYN-4)."""
    client = _Thinking()
    async with stand.attached() as (provider, attachment):
        call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, client))
        token = (await provider.receive())["id"]
        calls: dict[str, Any] = vars(attachment)["_calls"]
        limit = cast(Any, vars(calls[token]))["_limit"]
        until = limit.when()
        assert until is not None
        await provider.send(id="q", method="elicitation/create", params={"_meta": {"progressToken": token}})
        with anyio.fail_after(PATIENCE_S):
            await client.asked.wait()
            assert limit.when() is None
            client.answered.set()
            assert (await provider.receive())["id"] == "q"
            assert (limit.when() or 0) >= until
            limit.reschedule(0)
            with pytest.raises(LiveSourceFailed, match="no result within"):
                await call


async def test_a_cancelled_call_is_cancelled_at_the_provider(stand: ProviderStand) -> None:
    """MCP: `notifications/cancelled` names the request; a late result is dropped (DYN-4)."""
    async with stand.attached() as (provider, attachment):
        call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, RecordingClient()))
        request = await provider.receive()
        call.cancel()
        cancelled = await provider.receive()

        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == request["id"]
        await provider.send(id=request["id"], result=_text("too late"))
        assert (await provider.request("ping"))["result"] == {}


async def test_refusals_and_nonsense_results_fail_the_call_only(stand: ProviderStand) -> None:
    """Ours: an error, a result of a wrong type and a response without either fail the one call (DYN-4)."""
    responses: list[dict[str, Any]] = [
        {"error": {"code": -32603, "message": "no disk"}},
        {"error": "x"},
        {"result": [1]},
        {},
    ]
    async with stand.attached() as (provider, attachment):
        for response in responses:
            call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, RecordingClient()))
            request = await provider.receive()
            await provider.send(id="c77", result=_text("of no call"))
            await provider.send(id=5, result=_text("of no call"))
            await provider.send(id=request["id"], **response)
            with pytest.raises(LiveSourceFailed):
                await call
        with pytest.raises(NotFound):
            await attachment.request("tools/call", {"name": "unknown"}, RecordingClient())
        assert (await attachment.request("completion/complete", {}, RecordingClient()))["completion"] == {"values": []}


async def test_equal_names_of_two_sources_are_routed_by_source(stand: ProviderStand) -> None:
    """Ours: two providers of one tenant, and one of another tenant, have a tool of the same name (DYN-4, TEN-5)."""
    async with (
        stand.attached("one") as (first, of_first),
        stand.attached("two") as (second, of_second),
        stand.attached("one", slug="globex") as (third, of_third),
    ):
        for provider, attachment, name in ((first, of_first, "1"), (second, of_second, "2"), (third, of_third, "3")):
            call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, RecordingClient()))
            await provider.send(id=(await provider.receive())["id"], result=_text(name))
            assert await call == _text(name)


async def test_results_for_calls_of_another_provider_are_dropped(stand: ProviderStand) -> None:
    """Ours: ids count in one attachment only (TEN-5)."""
    async with stand.attached("one") as (one, of_one), stand.attached("two", slug="globex") as (two, _):
        call = asyncio.ensure_future(of_one.request("tools/call", {"name": "save"}, RecordingClient()))
        request = await one.receive()
        await two.send(id=request["id"], result=_text("stolen"))
        await two.send(method="notifications/progress", params={"progressToken": request["id"], "progress": 1})
        assert (await two.request("ping"))["result"] == {}
        assert not call.done()
        await one.send(id=request["id"], result=_text("own"))
        assert await call == _text("own")


async def test_a_broken_connection_is_resumed_with_its_calls(stand: ProviderStand) -> None:
    """Ours: within 5 s the source keeps its primitives and a named call; an unnamed call ends (DYN-4)."""
    key, client = stand.keys.make("acme"), RecordingClient()
    async with stand.connect(key) as provider:
        hello = await provider.hello()
        await provider.request("provider/register", tools=[TOOL])
        attachment = stand.sources.find("laptop")
        calls = [asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, client)) for _ in range(2)]
        ids = [(await provider.receive())["id"] for _ in calls]
        provider.connection.transport.abort()
    async with stand.connect(key) as provider:
        again = await provider.hello(resume=hello["resume"], calls=[ids[0], "c99", [], 7])

        assert (again["resumed"], again["attachment"], again["calls"]) == (True, hello["attachment"], ids[:1])
        assert again["resume"] != hello["resume"]
        assert stand.sources.find("laptop") is attachment
        assert stand.sources.changes["laptop"] == 1
        await provider.send(id=ids[0], result=_text("after all"))
        assert await calls[0] == _text("after all")
        with pytest.raises(LiveSourceDetached):
            await calls[1]
        assert (await attachment.discover()).primitives


async def test_without_a_resume_the_calls_end_and_the_source_is_gone(
    stand: ProviderStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: after the time for a resume the calls end with a clean error (DYN-3, DYN-4)."""
    monkeypatch.setattr(attachments, "RESUME_S", 0.05)
    async with stand.attached() as (provider, attachment):
        call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, RecordingClient()))
        await provider.receive()
        provider.connection.transport.abort()
        with anyio.fail_after(PATIENCE_S), pytest.raises(LiveSourceDetached):
            await call
        await stand.sources.wait_until_gone("laptop")
        with pytest.raises(LiveSourceDetached):
            await attachment.request("tools/call", {"name": "save"}, RecordingClient())
        with pytest.raises(LiveSourceDetached):
            await attachment.discover()


async def test_a_call_in_the_break_begins_after_the_resume(stand: ProviderStand) -> None:
    """Ours: a call waits for the connection that resumes (DYN-4)."""
    key = stand.keys.make("acme")
    async with stand.connect(key) as provider:
        hello = await provider.hello()
        await provider.request("provider/register", tools=[TOOL])
        attachment = stand.sources.find("laptop")
        provider.connection.transport.abort()
        await provider.closed()
    await until(lambda: not len(stand.providers.connections), seconds=PATIENCE_S, pause=0.001)
    call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, RecordingClient()))
    async with stand.connect(key) as provider:
        await provider.hello(resume=hello["resume"])
        await provider.send(id=(await provider.receive())["id"], result=_text("later"))
        assert await call == _text("later")


async def test_a_closed_connection_detaches_at_once(stand: ProviderStand) -> None:
    """Ours: 1000 and 1001 are no broken connection (DYN-3)."""
    async with stand.attached() as (provider, attachment):
        call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, RecordingClient()))
        await provider.receive()
        await provider.connection.close(1001)
        with pytest.raises(LiveSourceDetached):
            await call
        await stand.sources.wait_until_gone("laptop")


async def test_the_same_subject_takes_over_and_another_cannot(stand: ProviderStand) -> None:
    """Ours: a name belongs to a subject; its newest connection counts (DYN-4, TEN-5)."""
    key, other = stand.keys.make("acme", subject="anna"), stand.keys.make("acme", subject="ben")
    async with stand.attached(key=key) as (provider, attachment):
        async with stand.connect(other) as foreign:
            refused = await foreign.request("provider/hello", version=1, source="laptop")
            assert refused["error"]["data"] == {"code": "conflict"}
            assert (await foreign.closed())[0] == 4409
        assert stand.sources.find("laptop") is attachment
        call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, RecordingClient()))
        await provider.receive()
        async with stand.connect(stand.keys.make("acme", subject="anna")) as newer:
            assert (await newer.hello(resume="wrong", calls=["c1"]))["resumed"] is False
            assert (await provider.closed())[0] == 4410
            with pytest.raises(LiveSourceDetached):
                await call
            assert stand.sources.find("laptop") is not attachment


async def test_a_resume_token_of_another_subject_or_source_resumes_nothing(stand: ProviderStand) -> None:
    """Ours: the token counts with the subject and the source only (TEN-5)."""
    async with stand.connect(stand.keys.make("acme", subject="anna")) as provider:
        token = (await provider.hello("one"))["resume"]
        async with stand.connect(stand.keys.make("acme", subject="ben")) as foreign:
            refused = await foreign.request("provider/hello", version=1, source="one", resume=token)
            assert refused["error"]["data"] == {"code": "conflict"}
        async with stand.connect(stand.keys.make("acme", subject="anna")) as own:
            assert (await own.hello("two", resume=token))["resumed"] is False
        async with stand.connect(stand.keys.make("globex", subject="anna"), "globex") as elsewhere:
            assert (await elsewhere.hello("one", resume=token))["resumed"] is False
        assert stand.sources.find("one")


async def test_a_revoked_key_closes_its_connections_at_once(stand: ProviderStand) -> None:
    """Ours: the event of a change ends attachment and connection, and no resume follows (TEN-5)."""
    key = stand.keys.make("acme")
    async with stand.attached(key=key) as (provider, attachment), stand.attached("two") as (neighbour, _):
        async with stand.connect(key) as silent:
            revoked = stand.keys.revoke(key)
            stand.credentials.forget(revoked)
            stand.providers.end(lambda principal: principal.key == revoked)
            assert (await provider.closed())[0] == 4401
            assert (await silent.closed())[0] == 4401
        assert (await neighbour.request("ping"))["result"] == {}
        await stand.sources.wait_until_gone("laptop")
        with pytest.raises(InvalidStatus) as refused:
            async with stand.connect(key):
                pass
        assert refused.value.response.status_code == 401
        with pytest.raises(LiveSourceDetached):
            await attachment.discover()


async def test_a_key_that_ended_unnoticed_is_found(stand: ProviderStand) -> None:
    """Ours: keys of connections are looked up again after a gap, and once a minute (TEN-5)."""
    key = stand.keys.make("acme")
    async with stand.attached(key=key) as (provider, _):
        stand.keys.revoke(key)
        stand.providers.recheck_all()
        assert (await provider.closed())[0] == 4401


async def test_a_drain_lets_calls_end_and_sends_the_provider_away(stand: ProviderStand) -> None:
    """Ours: 1012 after the running calls; new connections are refused with 503 (SRV-6)."""
    async with stand.attached() as (provider, attachment), stand.attached("idle") as (idle, _):
        call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, RecordingClient()))
        request = await provider.receive()
        stand.providers.drain()
        assert (await idle.closed())[0] == 1012
        with pytest.raises(InvalidStatus) as refused:
            async with stand.connect(stand.keys.make("acme")):
                pass
        assert refused.value.response.status_code == 503
        await provider.send(id=request["id"], result=_text("in time"))
        assert await call == _text("in time")
        assert (await provider.closed())[0] == 1012


async def test_admission_follows_the_rules_of_mcp_urls(stand: ProviderStand) -> None:
    """Ours: 401 is equal for existing and missing tenants, 404 for foreign ones, 403 without the scope (TEN-2)."""
    own, wrong = stand.keys.make("acme"), stand.keys.make("acme", Scope.MCP)
    bodies: list[bytes] = []
    for key, slug, status in (
        ("mcpg_live_nothing", "acme", 401),
        ("mcpg_live_nothing", "missing", 401),
        (own, "globex", 404),
        (own, "missing", 404),
        ("operator-key-of-the-tests-0123456789", "acme", 404),
        (wrong, "acme", 403),
    ):
        with pytest.raises(InvalidStatus) as refused:
            async with stand.connect(key, slug):
                pass
        response = refused.value.response
        assert response.status_code == status
        bodies.append(bytes(response.body).partition(b"correlation_id")[0])
    assert bodies[0] == bodies[1]
    assert bodies[2] == bodies[3] == bodies[4]
