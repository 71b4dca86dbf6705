"""Agent sources after an interruption, over real PostgreSQL and Redis of two replicas."""

import asyncio

import anyio
import pytest

from gateway.catalog.kinds.live_sources import LIVE_SOURCES
from gateway.catalog.live import attachments as records
from gateway.domain.live_sources import Discovery, LiveKind, LiveSource
from gateway.errors import Conflict, NotFound
from gateway.jobs.live import agent_sources
from gateway.jobs.live.agent_sources import AgentSources
from gateway.redis.live.leases import SourceKey
from tests.integration.catalog.conftest import BY, changes
from tests.integration.jobs.live.test_attachments import Replica, Scene, scene
from tests.support.live_sources import declare_live, live_draft
from tests.support.open_database import module_database, open_database

__all__ = ["changes", "module_database", "open_database", "scene"]

PATIENCE_S = 20.0


def _sources(scene: Scene, replica: Replica) -> AgentSources:
    return AgentSources(scene.changes.catalog, replica.attachments, replica.leases, replica=replica.name)


async def _create(scene: Scene) -> LiveSource:
    draft = live_draft("laptop", LiveKind.AGENT, settings={"subject": "anna"})
    return await declare_live(scene.tenant, scene.changes.catalog, draft, by=BY)


async def _attach(scene: Scene, source: LiveSource, replica: Replica) -> None:
    assert await records.record_attached(
        scene.tenant, scene.changes.catalog, source, attachment="a1", replica=replica.name, discovery=Discovery()
    )


async def test_a_lease_that_another_replica_gives_back_ends_no_program(scene: Scene) -> None:
    """Ours: it took the lease because that had ended, and attached nothing; the program is offered again (DYN-3)."""
    source = await _create(scene)
    await _attach(scene, source, scene.here)
    await scene.there.leases.seize(SourceKey(scene.tenant, source.id))
    renewal = asyncio.ensure_future(_sources(scene, scene.here).renew(source))
    await asyncio.wait({renewal}, timeout=0.2)
    await scene.there.leases.release(SourceKey(scene.tenant, source.id), due_in_s=None)
    with anyio.fail_after(PATIENCE_S):
        assert (await renewal).id == source.id


async def test_a_lease_of_a_crashed_replica_is_awaited_only_so_long(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: Redis keeps the name of a replica that crashed; it holds no program back (DYN-3)."""
    monkeypatch.setattr(agent_sources, "LEASE_S", 0.0)
    source = await _create(scene)
    await scene.there.leases.seize(SourceKey(scene.tenant, source.id))
    with anyio.fail_after(PATIENCE_S):
        assert (await _sources(scene, scene.here).renew(source)).id == source.id


async def test_a_program_that_is_attached_elsewhere_is_not_offered_again(scene: Scene) -> None:
    """Ours: as PostgreSQL has it, also while the other replica is about to record it (DYN-4)."""
    source = await _create(scene)
    await scene.there.leases.seize(SourceKey(scene.tenant, source.id))
    renewal = asyncio.ensure_future(_sources(scene, scene.here).renew(source))
    await asyncio.wait({renewal}, timeout=0.2)
    assert not renewal.done()
    await _attach(scene, source, scene.there)
    with anyio.fail_after(PATIENCE_S), pytest.raises(Conflict):
        await renewal
    await LIVE_SOURCES.remove(scene.tenant, scene.changes.catalog, source.name, by=BY)
    with pytest.raises(NotFound):
        await _sources(scene, scene.here).renew(source)
