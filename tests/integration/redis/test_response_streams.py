"""The response stream of one request over a real Redis: its end depends on the serving task, not on what is stored."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import pytest
from starlette.types import Message

from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.principals import Principal
from gateway.errors import RedisUnavailable
from gateway.protocol.http.jsonrpc import expired_error, replica_lost_error
from gateway.protocol.http.sse_streams import EventStream
from gateway.protocol.sessions import response_sink
from gateway.protocol.sessions.response_sink import PostSink
from gateway.protocol.sessions.running_requests import NO_RESPONSE
from gateway.redis.sessions.keys import SessionKeys
from gateway.redis.sessions.stream_log import START, RequestOwner, StreamLog
from tests.integration.redis.conftest import ACME, Two
from tests.support.replicas import until

READER = Principal(tenant=ACME, slug="acme", key=KeyId("key_1"), subject="s", scopes=frozenset())
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'
Loss = Callable[[Two, Any], Awaitable[object]]


@dataclass(slots=True)
class _Client:
    """The client of a POST, who takes nothing until the gate is open."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    taken: list[Message] = field(default_factory=list[Message])

    async def take(self, message: Message) -> None:
        await self.gate.wait()
        self.taken.append(message)

    @property
    def body(self) -> bytes:
        """All that it was sent."""
        return b"".join(message.get("body", b"") for message in self.taken)

    @property
    def is_ended(self) -> bool:
        """True if the response has its proper end."""
        return self.taken[-1].get("more_body") is False


def _sink(two: Two, client: _Client, *, may_stream: bool = True) -> PostSink:
    return PostSink(two.record, b"1", EventStream(client.take, READER), two.here, may_stream=may_stream)


async def _log_of(raw: Any) -> str:
    """The only log there is."""
    (name,) = await raw.keys("*:log:r*")
    return str(name.decode())


async def _end_session(two: Two, raw: Any) -> None:
    del raw
    await two.there.sessions.remove(two.record.tenant, two.record.id)


async def _lose_all(two: Two, raw: Any) -> None:
    del two
    await raw.flushall()


async def _lose_log(two: Two, raw: Any) -> None:
    del two
    await raw.delete(await _log_of(raw))


async def _forge_answer(two: Two, raw: Any) -> None:
    del two
    name = await _log_of(raw)
    (last,) = await raw.xrevrange(name, count=1)
    await raw.xdel(name, last[0])
    await raw.xadd(name, {"f": b"forged", "m": b"0" * 16})


@pytest.mark.parametrize("lose", [_end_session, _lose_all, _lose_log, _forge_answer])
async def test_an_answer_that_is_gone_before_it_was_read_is_sent_all_the_same(two: Two, raw: Any, lose: Loss) -> None:
    """Ours: no request waits for an answer that cannot be read any more (SRV-2, CON-1)."""
    client = _Client()
    sink = _sink(two, client)
    assert await sink.send(b'{"method":"first"}')

    async def finish() -> None:
        await sink.respond(ANSWER)
        sink.abandon()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(finish)

            async def is_stored() -> bool:
                return bool(await raw.xlen(await _log_of(raw)) == 3)

            await until(is_stored)
            await lose(two, raw)
            client.gate.set()

    assert ANSWER in client.body
    assert b"forged" not in client.body
    assert client.is_ended


class _Away(StreamLog):
    """Logs that do not take an answer for so many times."""

    failures = 4

    async def append(
        self, keys: SessionKeys, stream: str, text: bytes, *, is_final: bool = False, request_id: str = ""
    ) -> str | None:
        if is_final and self.failures:
            self.failures -= 1
            raise RedisUnavailable("away")
        return await super().append(keys, stream, text, is_final=is_final, request_id=request_id)


async def test_a_stream_whose_answer_has_expired_ends(two: Two, raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: an answer is held for a minute while Redis is away; then a replay ends without it (SRV-4)."""
    monkeypatch.setattr(response_sink, "_RETRIES", 2)
    monkeypatch.setattr(response_sink, "REDIS_RETRY_S", 0.01)
    client = _Client()
    client.gate.set()
    sink = _sink(replace(two, here=replace(two.here, logs=_Away(two.here.bus, two.here.sessions))), client)
    assert await sink.send(b'{"method":"first"}')

    with anyio.fail_after(10):
        await sink.respond(ANSWER)
        sink.abandon()
        assert ANSWER in client.body
        stream = (await _log_of(raw)).rpartition(":")[2]

        async def is_ended() -> bool:
            found = await two.there.logs.read(two.keys, stream, START)
            return found.messages[-1].is_final and found.messages[-1].text == expired_error(b"1")

        await until(is_ended)


async def test_a_request_that_fails_without_an_answer_ends_its_stream_everywhere(two: Two, raw: Any) -> None:
    """Ours: its own stream ends, and a replay at another replica ends without an answer (SRV-2, CAL-4)."""
    client = _Client()
    client.gate.set()
    sink = _sink(two, client)
    assert await sink.send(b'{"method":"first"}')

    sink.abandon()

    with anyio.fail_after(10):
        stream = (await _log_of(raw)).rpartition(":")[2]
        run = RequestOwner(replica=two.here.logs.replica, request=b"1")

        async def is_notified() -> bool:
            found = await two.there.logs.read(two.keys, stream, START, run=run)
            return found.messages[-1].is_final and found.messages[-1].text == replica_lost_error(b"1")

        await until(is_notified)

        async def is_ended() -> bool:
            return client.is_ended

        await until(is_ended)


@pytest.mark.parametrize(
    ("has_spoken", "may_stream", "status"), [(True, True, 200), (False, True, 200), (False, False, 202)]
)
async def test_an_unanswered_request_ends_without_an_event(
    two: Two, raw: Any, has_spoken: bool, may_stream: bool, status: int
) -> None:
    """MCP: a cancelled request is not answered, here or in a replay; its response ends (SRV-1, SRV-2)."""
    client = _Client()
    client.gate.set()
    sink = _sink(two, client, may_stream=may_stream)
    if has_spoken:
        assert await sink.send(b'{"method":"first"}')

    with anyio.fail_after(10):
        await sink.respond(NO_RESPONSE)
    sink.abandon()

    assert client.taken[0]["status"] == status
    assert client.body.count(b"event: message") == int(has_spoken)
    assert not client.taken[-1].get("more_body", False)
    if has_spoken:
        found = await two.there.logs.read(two.keys, (await _log_of(raw)).rpartition(":")[2], START)
        assert [message.text for message in found.messages] == [b"", b'{"method":"first"}', b""]
        assert found.messages[-1].is_final
