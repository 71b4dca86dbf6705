"""Requests to live sources that one replica forwards to another, over real Redis."""

import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest
import structlog.testing
from msgspec import structs

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.live_sources import LiveKind, LiveSource
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.domain.sessions import SessionOwner, UpstreamSessionKey
from gateway.domain.tenancy.principals import ToolCaller
from gateway.errors import CapabilityMissing, GatewayError, NotFound
from gateway.handlers.interfaces import InputRequired
from gateway.jobs.live.forwarding import Forwarding
from gateway.jobs.live.messages import Begin, Cancel, Done, encode
from gateway.redis.event_bus import EventBus
from gateway.redis.heartbeat import LiveReplicas, ReplicaHeartbeat
from gateway.redis.live.inboxes import ReplicaInboxes
from gateway.redis.live.leases import SourceKey
from gateway.upstream.live.interfaces import LiveClient, LiveMethod
from tests.integration.redis.conftest import ACME, SECRET
from tests.support.replicas import until

NOW = datetime(2026, 11, 23, tzinfo=UTC)
SOURCE = LiveSource(
    tenant=ACME, id=LiveSourceId("liv_1"), name="editor", kind=LiveKind.NEOVIM, created_at=NOW, updated_at=NOW
)


@dataclass
class RecordingClient:
    """A client that keeps what it receives, and answers with `answer`."""

    abilities: frozenset[str] = frozenset({"elicitation"})
    received: list[object] = field(default_factory=list[object])
    answer: Mapping[str, Any] | Exception = field(default_factory=lambda: {"action": "accept"})

    @property
    def caller(self) -> ToolCaller | None:
        return None

    @property
    def owner(self) -> SessionOwner | None:
        return SessionOwner("ann", "s")

    @property
    def mirrored(self) -> object:
        return None

    def can(self, kind: str) -> bool:
        return kind in self.abilities

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.received.append((progress, total, message))

    async def log(self, level: str, data: object, logger: str | None = None) -> None:
        self.received.append((level, data, logger))

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        self.received.append((method, dict(params)))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Program:
    """Effect of requests in the attachment at the holder, by the name of the tool."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.cancelled = anyio.Event()
        self.seen: list[tuple[SourceKey, LiveMethod]] = []
        self.delivered: list[tuple[UpstreamSessionKey, bytes]] = []
        self.has_delivery = anyio.Event()

    async def deliver(self, key: UpstreamSessionKey, message: bytes) -> None:
        self.delivered.append((key, message))
        self.has_delivery.set()

    async def serve(
        self, key: SourceKey, method: LiveMethod, params: Mapping[str, object], client: LiveClient
    ) -> Mapping[str, Any]:
        self.seen.append((key, method))
        self.started.set()
        match params["name"]:
            case "talk":
                await client.progress(0.5, 1.0, "half")
                await client.log("info", {"a": [1, None]}, "editor")
                answer = await client.ask("elicitation/create", {"message": "sure?"})
                can = [client.can("elicitation"), client.can("sampling")]
                return {"answer": dict(answer), "can": can, "owner": client.owner}
            case "never":
                try:
                    await anyio.sleep_forever()
                except anyio.get_cancelled_exc_class():
                    self.cancelled.set()
                    raise
            case "missing":
                raise NotFound("no such tool")
            case "wrong":
                raise ZeroDivisionError
            case "chatty":
                for number in range(3000):
                    await client.progress(number)
            case _:
                pass
        return {"content": params["arguments"]}


@dataclass
class Both:
    """Two replicas; `there` holds the attachment."""

    here: Forwarding
    there: Forwarding
    holder: str
    program: Program
    buses: tuple[EventBus, EventBus]
    crash: AsyncExitStack
    """Closing it ends the holder's heartbeat."""

    async def call(self, name: str, client: LiveClient, **arguments: object) -> Mapping[str, Any]:
        params = {"name": name, "arguments": arguments}
        return await self.here.request(self.holder, SOURCE, "tools/call", params, client=client)


@pytest.fixture
async def both(redis_url: str) -> AsyncGenerator[Both]:
    space, program = secrets.token_hex(4), Program()
    async with (
        EventBus(redis_url, secret=SECRET, namespace=space) as here,
        EventBus(redis_url, secret=SECRET, namespace=space) as there,
        ReplicaHeartbeat(here),
        AsyncExitStack() as crash,
    ):
        await crash.enter_async_context(ReplicaHeartbeat(there))
        sides = [
            Forwarding(ReplicaInboxes(bus), LiveReplicas(bus), program.serve, program.deliver, replica=bus.replica)
            for bus in (here, there)
        ]
        async with sides[0], sides[1]:
            yield Both(sides[0], sides[1], there.replica, program, (here, there), crash)


async def test_a_message_outside_a_response_reaches_the_replica_that_is_alive(both: Both) -> None:
    """DYN-5: a server's question about a request at another replica; without a live one, there is no wait."""
    key = UpstreamSessionKey(SOURCE.tenant, SOURCE.id, 1, SessionOwner("ann", "s"), b"\xff")
    assert await both.here.pass_on([both.holder, "killed"], key, b"{}")
    with anyio.fail_after(10):
        await both.program.has_delivery.wait()
    assert both.program.delivered == [(key, b"{}")]
    assert not await both.here.pass_on(["killed"], key, b"{}")


async def test_a_request_runs_at_the_holder_and_talks_to_the_client(both: Both) -> None:
    """DYN-1: progress, log messages and questions travel back, answers travel there."""
    client = RecordingClient()
    found = await both.call("talk", client)
    assert found == {"answer": {"action": "accept"}, "can": [True, False], "owner": ["ann", "s"]}
    assert client.received == [
        (0.5, 1.0, "half"),
        ("info", {"a": [1, None]}, "editor"),
        ("elicitation/create", {"message": "sure?"}),
    ]
    assert both.program.seen == [(SourceKey(ACME, SOURCE.id), "tools/call")]


@pytest.mark.parametrize(
    ("name", "kind"), [("missing", NotFound), ("wrong", LiveSourceFailed)], ids=["refusal", "fault of ours"]
)
async def test_failures_keep_their_kind(both: Both, name: str, kind: type[GatewayError]) -> None:
    """Ours: the caller sees the same error as at the holder; a bug there shows no details."""
    with pytest.raises(kind) as raised:
        await both.call(name, RecordingClient())
    assert "Zero" not in raised.value.message


async def test_a_refused_question_reaches_the_program_as_that(both: Both) -> None:
    """DYN-5: a client that cannot be asked is known to the attachment."""
    client = RecordingClient(answer=CapabilityMissing("cannot", capability="elicitation"))
    with pytest.raises(CapabilityMissing) as raised:
        await both.call("talk", client)
    assert raised.value.capability == "elicitation"


async def test_a_client_that_answers_later_ends_the_request_at_the_holder(both: Both) -> None:
    """DYN-5: in 2026-07-28 the request_id leaves the call, so the request is cancelled and runs again later."""
    later = InputRequired({}, {})
    with pytest.raises(InputRequired):
        await both.call("talk", RecordingClient(answer=later))
    await until(lambda: not running(both))


async def test_cancelling_reaches_the_holder(both: Both) -> None:
    """DYN-1: a cancelled call is cancelled at the program."""
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(both.call, "never", RecordingClient())
            await both.program.started.wait()
            scope.cancel()
    with anyio.fail_after(10):
        await both.program.cancelled.wait()


async def test_a_crashed_holder_ends_its_requests(both: Both) -> None:
    """DYN-1: calls in flight end with a clean error when the replica of the attachment is gone."""
    failed: list[Exception] = []

    async def call() -> None:
        try:
            await both.call("never", RecordingClient())
        except LiveSourceDetached as error:
            failed.append(error)

    with anyio.fail_after(15):
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await both.program.started.wait()
            await both.crash.aclose()
    assert len(failed) == 1


async def test_integers_of_any_size_travel(both: Both) -> None:
    """Attack: a value that MessagePack cannot hold is neither changed nor keeps the caller waiting."""
    with anyio.fail_after(20):
        found = await both.call("echo", RecordingClient(), number=2**70, other=-(2**64), text="\u2028")
    assert found == {"content": {"number": 2**70, "other": -(2**64), "text": "\u2028"}}


async def test_a_cancellation_right_behind_the_request_counts(both: Both) -> None:
    """Attack: after a stall of Redis both arrive at once; a cancelled call must not run."""
    here, there = both.buses
    inboxes, name = ReplicaInboxes(here), secrets.token_hex(16)
    request = encode(structs.replace(begin(name), sender=here.replica))
    both.there.receive(request)
    both.there.receive(encode(Cancel(request=name, sender=here.replica)))
    await until(lambda: not running(both))
    assert both.program.seen == []
    assert await inboxes.send(there.replica, request)
    await until(lambda: bool(both.program.seen))


async def test_a_crash_of_the_holder_ends_an_open_question(both: Both) -> None:
    """DYN-1: the client's user may think for minutes; the end of the program is seen at once all the same."""
    client = PonderingClient()
    failures: list[LiveSourceDetached] = []
    with anyio.fail_after(15):
        async with anyio.create_task_group() as group:

            async def crash() -> None:
                await client.asked.wait()
                await both.crash.aclose()

            group.start_soon(crash)
            try:
                await both.call("talk", client)
            except LiveSourceDetached as error:
                failures.append(error)
    assert len(failures) == 1
    assert client.is_cancelled


class PonderingClient(RecordingClient):
    """A client whose user never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = anyio.Event()
        self.is_cancelled = False

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        self.asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.is_cancelled = True
        raise AssertionError


async def test_an_excess_of_notifications_is_dropped_and_the_result_arrives(both: Both) -> None:
    """Attack: a program that reports without end costs bounded memory, and its result still counts."""
    client = RecordingClient()
    with anyio.fail_after(60):
        assert await both.call("chatty", client) == {"content": {}}
    assert client.received


async def test_messages_of_others_change_nothing(both: Both) -> None:
    """Attack: a replica cannot end or answer a request that it does not serve, and forged messages are refused."""
    here, there = both.buses
    inboxes, name = ReplicaInboxes(there), secrets.token_hex(16)
    async with anyio.create_task_group() as group:
        group.start_soon(both.call, "never", RecordingClient())
        await both.program.started.wait()
        [running_now] = running(both)
        stolen = Done(request=running_now, sender="another", result=b'{"content":[]}')
        await inboxes.send(here.replica, encode(stolen))
        await inboxes.send(there.replica, encode(Cancel(request=running_now, sender="another")))
        await inboxes.send(there.replica, b"\xff nonsense")
        with structlog.testing.capture_logs() as logs:
            await ReplicaInboxes(forger(there)).send(there.replica, encode(begin(name)))
            await until(lambda: any(entry["event"] == "message_refused" for entry in logs))
        assert await both.call("echo", RecordingClient(), a="ü") == {"content": {"a": "ü"}}
        assert running(both) == [running_now]
        assert not both.program.cancelled.is_set()
        group.cancel_scope.cancel()


async def test_a_full_inbox_refuses_more(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: an inbox is bounded in bytes, so a replica that does not read costs Redis little."""
    monkeypatch.setattr("gateway.redis.client.COMMAND_S", 30.0)  # 30 MiB on a busy machine
    async with EventBus(redis_url, secret=SECRET, namespace=secrets.token_hex(4)) as bus:
        inboxes, large = ReplicaInboxes(bus), bytes(30 * 1024 * 1024)
        assert await inboxes.send("elsewhere", large)
        assert await inboxes.send("elsewhere", large)
        assert not await inboxes.send("elsewhere", large)


def running(both: Both) -> list[str]:
    return list(both.there.running)


def begin(name: str) -> Begin:
    return Begin(
        request=name,
        sender="somewhere",
        tenant=TenantId("ten_other"),
        source=SOURCE.id,
        method="tools/call",
        params=b'{"name":"echo","arguments":{}}',
        abilities=[],
    )


class Forger:
    """A bus with another secret: messages that a client of the same Redis without the secret can write."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    def derive_all(self, purpose: str) -> list[bytes]:
        return [bytes(32)]


def forger(bus: EventBus) -> Any:
    return Forger(bus)
