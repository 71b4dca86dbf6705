"""Attachments of live sources on two replicas, over real PostgreSQL and Redis; the program behind them is scripted."""

import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.catalog.kinds.live_sources import LIVE_SOURCES, reattach_live_source
from gateway.catalog.live import attachments as records
from gateway.catalog.origins import find_origin
from gateway.domain.events import CatalogMoved, ResourceUpdated
from gateway.domain.identifiers import TenantId
from gateway.domain.live_sources import AttachmentState, DiscoveredPrimitive, Discovery, LiveKind, LiveSource
from gateway.domain.primitives import Family
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.jobs.live.attachments import LiveAttachments
from gateway.jobs.live.held import HeldAttachments
from gateway.jobs.live.null_client import NULL_CLIENT
from gateway.redis.event_bus import EventBus
from gateway.redis.live.leases import AttachmentLeases, SourceKey
from gateway.store.kinds.singletons import POLICY
from gateway.upstream.live.interfaces import LiveAttachment, LiveClient, LiveListener, LiveMethod
from tests.integration.catalog.conftest import BY, Changes, changes
from tests.integration.redis.conftest import SECRET
from tests.support.live_sources import declare_live, live_draft
from tests.support.open_database import module_database, open_database
from tests.support.replicas import until

__all__ = ["changes", "module_database", "open_database"]

SETTINGS = {"url": "http://127.0.0.1:9/mcp"}


@dataclass
class Program:
    """A remote program: its primitives, and its open attachments."""

    tools: list[str] = field(default_factory=lambda: ["save"])
    resources: list[str] = field(default_factory=list[str])
    fault: str | None = None
    open: list["ScriptedAttachment"] = field(default_factory=list["ScriptedAttachment"])
    tries: int = 0

    @asynccontextmanager
    async def attach(self, source: LiveSource, listener: LiveListener) -> AsyncGenerator[LiveAttachment]:
        del source
        self.tries += 1
        if self.fault is not None:
            raise LiveSourceFailed(self.fault)
        attachment = ScriptedAttachment(self, listener)
        self.open.append(attachment)
        try:
            yield attachment
        finally:
            self.open.remove(attachment)


@dataclass(eq=False)
class ScriptedAttachment:
    """One attachment to the program."""

    program: Program
    listener: LiveListener
    closed: anyio.Event = field(default_factory=anyio.Event)
    followed: list[object] = field(default_factory=list[object])
    is_local: bool = False
    is_retired: bool = False

    def retire(self) -> None:
        self.is_retired = True

    async def discover(self) -> Discovery:
        tools = [_primitive(Family.TOOL, name) for name in self.program.tools]
        resources = [_primitive(Family.RESOURCE, uri) for uri in self.program.resources]
        return Discovery(primitives=[*tools, *resources], title="program 1.0", can_subscribe=True)

    async def request(self, method: LiveMethod, params: Mapping[str, object], client: LiveClient) -> Mapping[str, Any]:
        del client
        if method == "resources/subscribe":
            self.followed.append(params["uri"])
            return {}
        return {"content": [{"type": "text", "text": str(params["name"])}]}

    async def wait_closed(self) -> str:
        await self.closed.wait()
        return "the program ended"


def _primitive(family: Family, name: str) -> DiscoveredPrimitive:
    definition = {"name": name, "description": "d"} if family is Family.TOOL else {"uri": name, "name": "n"}
    return DiscoveredPrimitive(family=family, name=name, definition=definition)


@dataclass
class Replica:
    """One replica's attachments."""

    attachments: LiveAttachments
    held: HeldAttachments
    leases: AttachmentLeases
    name: str
    stack: AsyncExitStack

    async def stop(self) -> None:
        """End it as a drain does."""
        await self.stack.aclose()


@dataclass
class Scene:
    """Two replicas, one tenant and one program."""

    here: Replica
    there: Replica
    changes: Changes
    program: Program

    async def create(self, name: str = "editor", kind: LiveKind = LiveKind.MCP, **more: Any) -> LiveSource:
        draft = live_draft(name, kind, settings=SETTINGS if kind is LiveKind.MCP else {}, **more)
        made = await declare_live(self.tenant, self.changes.catalog, draft, by=BY)
        await self.here.leases.add([SourceKey(self.tenant, made.id)], is_due=True)
        return made

    @property
    def tenant(self) -> Any:
        return self.changes.tenant.id

    async def status(self, source: LiveSource) -> Any:
        found = await LIVE_SOURCES.get(self.tenant, self.changes.catalog, source.name)
        return found.status

    async def until(self, source: LiveSource, holds: Callable[[Any], bool]) -> Any:
        """Wait until the stored status fulfils a condition."""
        with anyio.fail_after(20):
            while not holds(status := await self.status(source)):  # noqa: ASYNC110  # PostgreSQL has no event for it
                await anyio.sleep(0.02)
        return status

    async def attached(self, source: LiveSource) -> Replica:
        """Wait until the source is attached; return the replica that holds it."""
        await self.until(source, lambda status: status.state is AttachmentState.ATTACHED)
        key = SourceKey(self.tenant, source.id)
        [holder] = [replica for replica in (self.here, self.there) if key in replica.held]
        return holder


@pytest.fixture
async def scene(changes: Changes, redis_url: str) -> AsyncGenerator[Scene]:
    space, program = secrets.token_hex(4), Program()
    async with AsyncExitStack() as stack:
        replicas: list[Replica] = []
        for _ in range(2):
            bus = await stack.enter_async_context(EventBus(redis_url, secret=SECRET, namespace=space))
            leases, held = AttachmentLeases(bus, lease_s=3.0), HeldAttachments()
            own = await stack.enter_async_context(AsyncExitStack())
            connectors = {LiveKind.MCP: program}
            attachments = LiveAttachments(leases, changes.catalog, connectors, held, replica=bus.replica, round_s=0.1)
            await own.enter_async_context(attachments)
            replicas.append(Replica(attachments, held, leases, bus.replica, own))
        yield Scene(replicas[0], replicas[1], changes, program)


async def test_one_replica_attaches_and_records_the_primitives(scene: Scene) -> None:
    """DYN-1: the primitives of an attached source are recorded, and the catalog moves."""
    source = await scene.create()
    holder = await scene.attached(source)
    status = await scene.status(source)
    assert (status.replica, status.title) == (holder.name, "program 1.0")
    assert len(scene.program.open) == 1
    assert any(isinstance(event, CatalogMoved) for event in scene.changes.events)
    key = SourceKey(scene.tenant, source.id)
    found = await holder.held.serve(key, "tools/call", {"name": "save"}, NULL_CLIENT)
    assert found["content"][0]["text"] == "save"
    other = scene.there if holder is scene.here else scene.here
    with pytest.raises(LiveSourceDetached):
        await other.held.serve(key, "tools/call", {"name": "save"}, NULL_CLIENT)


async def test_a_report_of_changes_leads_to_a_new_discovery(scene: Scene) -> None:
    """DYN-1: after a change the source is listed again, without a new attachment."""
    source = await scene.create(accepts_changes=True)
    await scene.attached(source)
    before = (await scene.status(source)).attachment
    moved = len(scene.changes.events)
    scene.program.tools.append("format")
    scene.program.open[0].listener.changed()
    await until(lambda: len(scene.changes.events) > moved, seconds=20)
    assert (await scene.status(source)).attachment == before
    assert scene.program.tries == 1


async def test_a_lost_attachment_is_recorded_and_tried_again(scene: Scene) -> None:
    """DYN-1: when the program ends, its primitives go; when it is back, so are they."""
    source = await scene.create()
    await scene.attached(source)
    scene.program.fault = "connection refused"
    scene.program.open[0].closed.set()
    status = await scene.until(source, lambda status: status.state is AttachmentState.FAILED)
    assert status.fault in {"the program ended", "connection refused"}
    assert status.retry_at is not None
    scene.program.fault = None
    await scene.attached(source)


async def test_failures_are_counted_and_the_pause_grows(scene: Scene) -> None:
    """Ours: a source that cannot be reached is tried again with a growing pause, and the reason is shown."""
    scene.program.fault = "connection refused"
    source = await scene.create()
    status = await scene.until(source, lambda status: status.failures >= 2)
    assert status.fault == "connection refused"
    assert status.state is AttachmentState.FAILED
    assert (status.retry_at - status.since).total_seconds() > 1


async def test_another_replica_takes_over_when_one_ends(scene: Scene) -> None:
    """DYN-1: the source of a replica that drains is attached at the other one, and stays recorded meanwhile."""
    source = await scene.create()
    holder = await scene.attached(source)
    first = (await scene.status(source)).attachment
    await holder.stop()
    await scene.until(source, lambda status: status.attachment != first)
    assert (await scene.attached(source)) is not holder


async def test_another_replica_takes_over_after_a_crash(scene: Scene) -> None:
    """DYN-1: a replica that no longer renews loses its source, and closes its own attachment when it learns of it."""
    source = await scene.create()
    holder = await scene.attached(source)
    first = (await scene.status(source)).attachment
    other = scene.there if holder is scene.here else scene.here
    await other.leases.seize(SourceKey(scene.tenant, source.id))
    await until(lambda: SourceKey(scene.tenant, source.id) not in holder.held, seconds=20)
    await other.leases.release(SourceKey(scene.tenant, source.id), due_in_s=0)
    await scene.until(source, lambda status: status.attachment != first)
    assert len(scene.program.open) == 1


async def test_a_changed_source_is_attached_again(scene: Scene) -> None:
    """DYN-1: an attachment never outlives the settings that it was opened with."""
    source = await scene.create()
    holder = await scene.attached(source)
    first = (await scene.status(source)).attachment
    await reattach_live_source(scene.tenant, scene.changes.catalog, source.name)
    holder.held.interrupt(SourceKey(scene.tenant, source.id))
    await scene.until(source, lambda status: status.attachment != first)


async def test_a_removed_source_is_not_attached_again(scene: Scene) -> None:
    """DYN-1: removing a source ends its attachment for good."""
    source = await scene.create()
    holder = await scene.attached(source)
    await LIVE_SOURCES.remove(scene.tenant, scene.changes.catalog, source.name, by=BY)
    holder.held.interrupt(SourceKey(scene.tenant, source.id))
    await until(lambda: not scene.program.open and not scene.here.held.scopes and not scene.there.held.scopes)
    assert await records.load(scene.tenant, scene.changes.catalog, source.id) is None


async def test_updates_of_own_resources_are_published_and_others_are_not(scene: Scene) -> None:
    """Attack: a source reports updates of another source's resource, and without end."""
    scene.program.resources = ["note://one"]
    source = await scene.create()
    await scene.attached(source)
    [attachment] = scene.program.open
    await until(lambda: bool(attachment.followed), seconds=20)
    for number in range(100_000):
        attachment.listener.updated(f"other://{number}")
    attachment.listener.updated("note://one")
    await anyio.lowlevel.checkpoint()
    with anyio.fail_after(20):
        while not _updates(scene):
            attachment.listener.updated("note://one")
            await anyio.sleep(0.05)
    assert set(_updates(scene)) == {"note://one"}


async def test_a_program_that_connects_by_itself_is_held_until_it_leaves(scene: Scene) -> None:
    """DYN-6: an offered attachment is recorded, taken over by a newer connection, and gone with it."""
    source = await scene.create("agent", LiveKind.AGENT)
    key = SourceKey(scene.tenant, source.id)
    first, second = (ScriptedAttachment(scene.program, _deaf) for _ in range(2))
    async with anyio.create_task_group() as group:
        ended = anyio.Event()

        async def connect_first() -> None:
            async with scene.here.attachments.offer(source, first):
                await anyio.sleep_forever()
            ended.set()

        group.start_soon(connect_first)
        assert await scene.attached(source) is scene.here
        async with scene.there.attachments.offer(source, second):
            with anyio.fail_after(20):
                await ended.wait()
            assert key in scene.there.held
            assert key not in scene.here.held
            assert (await scene.status(source)).replica == scene.there.name
        assert (await scene.status(source)).state is AttachmentState.DETACHED
    assert await scene.here.leases.holder(key) is None


async def test_the_program_of_a_crashed_replica_is_recorded_as_gone(scene: Scene) -> None:
    """DYN-6: nothing attaches to a program by itself, so its primitives go when the lease of its replica ends."""
    draft = live_draft("agent", LiveKind.AGENT)
    source = await declare_live(scene.tenant, scene.changes.catalog, draft, by=BY)
    assert await records.record_attached(
        scene.tenant,
        scene.changes.catalog,
        source,
        attachment="lost",
        replica="crashed",
        discovery=Discovery(primitives=[_primitive(Family.TOOL, "save")]),
    )
    await scene.here.leases.add([SourceKey(scene.tenant, source.id)], is_due=True)
    await scene.until(source, lambda status: status.state is AttachmentState.DETACHED)


async def test_an_offer_that_is_interrupted_while_it_is_recorded_is_refused(scene: Scene) -> None:
    """Attack: the program must not believe that it is attached, when an admin changes its source at that moment."""
    source = await scene.create("agent", LiveKind.AGENT)
    key = SourceKey(scene.tenant, source.id)

    class Interrupting(ScriptedAttachment):
        async def discover(self) -> Discovery:
            scene.here.held.interrupt(key)
            await anyio.lowlevel.checkpoint()
            return await super().discover()

    with pytest.raises(LiveSourceFailed, match="changed"):
        async with scene.here.attachments.offer(source, Interrupting(scene.program, _deaf)):
            raise AssertionError("it was interrupted before it was open")
    assert key not in scene.here.held
    assert await scene.there.leases.holder(key) is None


async def test_a_program_elsewhere_survives_the_loop_of_another_replica(scene: Scene) -> None:
    """Attack: a replica that takes a due agent source finds it connected elsewhere, and leaves its record alone."""
    source = await scene.create("agent", LiveKind.AGENT)
    key = SourceKey(scene.tenant, source.id)
    async with scene.here.attachments.offer(source, ScriptedAttachment(scene.program, _deaf)):
        recorded = (await scene.status(source)).attachment
        await scene.there.attachments._hold_lease(key)  # pyright: ignore[reportPrivateUsage]  # its moment is chosen here
        status = await scene.status(source)
        assert (status.state, status.attachment) == (AttachmentState.ATTACHED, recorded)
        assert await scene.there.leases.holder(key) == scene.here.name


async def test_an_attachment_that_is_not_recorded_is_closed(scene: Scene) -> None:
    """SRV-4: an event about a changed or removed source can be lost; the comparison with PostgreSQL makes up for it."""
    source = await scene.create()
    await scene.attached(source)
    await LIVE_SOURCES.remove(scene.tenant, scene.changes.catalog, source.name, by=BY)
    await scene.here.attachments.compare()
    await scene.there.attachments.compare()
    await until(lambda: not scene.program.open, seconds=20)


async def test_the_attachments_of_a_removed_tenant_are_closed(scene: Scene) -> None:
    """Attack: a program or connection of a removed tenant must not go on (TEN-1)."""
    source = await scene.create()
    holder = await scene.attached(source)
    holder.held.retire_tenant(TenantId("ten_another"))
    assert scene.program.open
    holder.held.retire_tenant(scene.tenant)
    await until(lambda: SourceKey(scene.tenant, source.id) not in holder.held, seconds=20)


class _Deaf:
    def changed(self) -> None: ...

    def updated(self, uri: str) -> None: ...

    def noticed(self, notice: str) -> None: ...


_deaf = _Deaf()


def _updates(scene: Scene) -> list[str]:
    return [event.uri for event in scene.changes.events if isinstance(event, ResourceUpdated)]


async def test_an_origin_that_the_policy_no_longer_allows_is_detached(scene: Scene) -> None:
    """Ours: the tenant's `http_origins` hold for what is attached, and for what would be (ISO-1)."""
    source = await scene.create()
    holder = await scene.attached(source)

    async def allow(*origins: str) -> None:
        async with scene.changes.catalog.store.transaction(scene.tenant) as db:
            policy = replace(await POLICY.get(scene.tenant, db), http_origins=origins)
            await POLICY.save(scene.tenant, db, policy)

    await allow("https://elsewhere.example")
    await holder.attachments.compare()
    status = await scene.until(source, lambda status: status.state is AttachmentState.FAILED)
    assert "does not allow requests to this origin" in status.fault
    await allow("https://elsewhere.example", str(find_origin(str(SETTINGS["url"]))))
    await scene.here.leases.add([SourceKey(scene.tenant, source.id)], is_due=True)
    await scene.attached(source)
