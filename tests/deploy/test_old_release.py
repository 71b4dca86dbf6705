"""An upgrade with the code of an older release, not an imitation of it: it serves on, beside this one, until replaced.

The older release makes its own database and goes on working in it while this one migrates it, starts on it and takes
over. What a client began at the one goes on at the other.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.store.database.migrations import head, migrate
from tests.deploy.old_release import RELEASES, OldRelease, unpack_old_release
from tests.deploy.topology import clean_environment
from tests.support.documents import many, pets
from tests.support.gateway import OPERATOR_KEY, SECRET_KEY
from tests.support.replicas import (
    Mode,
    Replica,
    Replicas,
    commanding,
    grant_redis,
    tool_names,
    until,
)
from tests.support.servers import TestDatabase, TestServers
from tests.support.upstream import recording_upstream

pytestmark = pytest.mark.long
PATIENCE_S = 300
CLIENTS_PER_ERA = 2
MODES: tuple[Mode, ...] = ("2026-07-28", "legacy")
READS = ("", "/tools", "/tools/get_pet", "/sources", "/sources/api", "/sources/api/report", "/keys", "/policy")

OF_THIS_RELEASE: dict[str, Any] = {
    "definition": {
        "name": "hello",
        "description": "A kind of tool that the older release does not know.",
        "inputSchema": {"type": "object", "properties": {}},
    },
    "handler": {"kind": "static", "content": [{"type": "text", "text": "hello"}]},
}


@dataclass(slots=True)
class Upgrade:
    """Two replicas of the older release that serve, two of this one that are not started, and their servers."""

    replicas: Replicas
    database: TestDatabase
    upstream_url: str
    key: str

    @property
    def old(self) -> tuple[Replica, ...]:
        """Those of the older release."""
        return self.replicas.all[:2]

    @property
    def new(self) -> tuple[Replica, ...]:
        """Those of this release."""
        return self.replicas.all[2:]

    async def verified(self, replica: Replica) -> dict[str, Any]:
        """The tenant's trail, as a replica of this release finds it."""
        answer = await replica.gateway.admin.get("/tenants/acme/audit/verify")
        found: dict[str, Any] = answer.raise_for_status().json()
        return found


@dataclass(slots=True)
class Work:
    """Results of the clients meanwhile."""

    calls: dict[Mode, int] = field(default_factory=lambda: dict.fromkeys(MODES, 0))
    failures: list[str] = field(default_factory=list[str])
    is_over: bool = False


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OldRelease:
    """An older release; without it these tests are skipped."""
    schema: str = request.param
    found = unpack_old_release(tmp_path_factory.mktemp("old-release"), RELEASES[schema])
    assert found.schema() == schema
    return found


@pytest.fixture
async def upgrade(release: OldRelease, servers: TestServers, tmp_path: Path) -> AsyncGenerator[Upgrade]:
    """The older release at work, on a database that its own migration made."""
    redis_url = servers.empty_redis()
    with servers.empty_database() as database:
        release.migrate(database.owner_url, database.app_url, SECRET_KEY)
        async with recording_upstream() as upstream, AsyncExitStack() as stack:
            replicas = _replicas(release, database, redis_url, upstream.authority, tmp_path)
            users = [replica.redis_user for replica in replicas.all]
            grant_redis(redis_url, users)
            stack.callback(_forget_users, redis_url, users)
            for replica in replicas.all:
                stack.push_async_callback(replica.close)
            async with anyio.create_task_group() as group:
                for replica in replicas.all[:2]:
                    group.start_soon(replica.start)
            first = replicas.a.gateway
            await first.create_tenant("acme")
            await first.import_document("acme", pets(upstream.url))
            policy = {"limits": {"calls_per_second": 10_000, "burst": 10_000}}
            (await first.admin.put("/tenants/acme/policy", json=policy)).raise_for_status()
            yield Upgrade(replicas, database, upstream.url, await first.create_key("acme"))


async def test_the_older_release_serves_beside_this_one(upgrade: Upgrade) -> None:
    """Ours: after this release's migration both serve the same tenants, and one trail holds what both did (SRV-6)."""
    with anyio.fail_after(PATIENCE_S):
        old, new = upgrade.old[0], upgrade.new[0]
        before = await _reads(old)

        assert (await migrate(upgrade.database.owner_url))[-1] == head()

        assert await _reads(old) == before, "the older release shows another tenant after the migration"
        await _calls_succeed(upgrade, old)
        await new.start()
        for replica in (old, new):
            await _calls_succeed(upgrade, replica)
            assert (await replica.gateway.http.get("/readyz")).status_code == 200
        (await new.gateway.admin.post("/tenants/acme/tools", json=OF_THIS_RELEASE)).raise_for_status()
        await old.gateway.import_document("acme", many(upgrade.upstream_url, 1), name="of-the-old")
        await new.gateway.import_document("acme", pets(upgrade.upstream_url), name="of-the-new", prefix="new_")
        await _lists(upgrade, new, {"get_pet", "op_0000", "new_get_pet", "hello"})
        await _lists(upgrade, old, {"get_pet", "op_0000", "new_get_pet"})  # what it does not know it leaves out
        for replica in (old, new):
            await _calls_succeed(upgrade, replica, "new_get_pet")
        assert await _trail_is_whole(upgrade, new) >= {"catalog"}


async def test_the_older_release_is_replaced_while_clients_of_both_eras_call(upgrade: Upgrade) -> None:
    """Ours: one replica after the other is replaced; no call fails, and sessions begun before go on (SRV-6)."""
    work = Work()
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            for mode in MODES:
                for _ in range(CLIENTS_PER_ERA):
                    group.start_soon(_call_on, upgrade, mode, work)
            await _worked(work)
            await migrate(upgrade.database.owner_url)
            await _worked(work)
            for leaving, coming in zip(upgrade.old, upgrade.new, strict=True):
                await coming.start()
                await _worked(work)
                assert await leaving.stop() == 0
                await _worked(work)
            work.is_over = True
        assert work.failures == []
        await _trail_is_whole(upgrade, upgrade.new[0])


def _replicas(release: OldRelease, database: TestDatabase, redis_url: str, allowed: str, folder: Path) -> Replicas:
    environment = clean_environment() | {
        "GATEWAY_DATABASE_URL": database.app_url,
        "GATEWAY_SECRET_KEYS": SECRET_KEY,
        "GATEWAY_OPERATOR_KEY": OPERATOR_KEY,
        "GATEWAY_EGRESS_ALLOW": allowed,
        "GATEWAY_LOG_FORMAT": "json",
    }
    older = environment | release.environment
    old = [Replica(name, folder, older, redis_url, python=str(release.python)) for name in ("old-a", "old-b")]
    new = [Replica(name, folder, environment, redis_url) for name in ("new-a", "new-b")]
    return Replicas((*old, *new))


def _forget_users(redis_url: str, users: list[str]) -> None:
    with commanding(redis_url) as command:
        command("ACL", "DELUSER", *users)


async def _reads(replica: Replica) -> dict[str, object]:
    """The tenant as its admin API shows it."""
    reported: dict[str, object] = {}
    for path in READS:
        answer = await replica.gateway.admin.get(f"/tenants/acme{path}")
        reported[path] = answer.raise_for_status().json()
    return reported


async def _calls_succeed(upgrade: Upgrade, replica: Replica, tool: str = "get_pet") -> None:
    """Clients of both eras list and call at this replica."""
    for mode in MODES:
        async with upgrade.replicas.client("acme", upgrade.key, mode, to=replica) as client:
            assert "get_pet" in await tool_names(client)
            answer = await client.call_tool(tool, {"id": 7})
            assert not answer.is_error, answer.content


async def _lists(upgrade: Upgrade, replica: Replica, wanted: set[str]) -> None:
    """The replica comes to list these tools, of any origin."""

    async def are_there() -> bool:
        async with upgrade.replicas.client("acme", upgrade.key, "2026-07-28", to=replica) as client:
            return wanted <= set(await tool_names(client))

    await until(are_there, seconds=PATIENCE_S)


async def _trail_is_whole(upgrade: Upgrade, replica: Replica) -> set[str]:
    """No entry is missing or changed, whichever release wrote it; the writers of the trail."""
    found = await upgrade.verified(replica)
    assert found["ok"] is True, found
    return {chain["writer"] for chain in found["writers"]}


async def _call_on(upgrade: Upgrade, mode: Mode, work: Work) -> None:
    """One client, each request at the next replica; its session was begun at the older release."""
    async with upgrade.replicas.client("acme", upgrade.key, mode) as client:
        assert "get_pet" in await tool_names(client)
        while not work.is_over:
            try:
                answer = await client.call_tool("get_pet", {"id": 7})
            except Exception as error:  # whatever it is, it is what must not happen
                work.failures.append(f"{mode}: {type(error).__name__}: {error}")
                return
            if answer.is_error:
                work.failures.append(f"{mode}: {answer.content}")
            work.calls[mode] += 1


async def _worked(work: Work) -> None:
    """Both eras have been answered a number of times more."""
    before = dict(work.calls)

    def has_worked() -> bool:
        return bool(work.failures) or all(work.calls[mode] >= before[mode] + 20 for mode in MODES)

    await _reached(has_worked)
    assert work.failures == []


async def _reached(claim: Callable[[], bool]) -> None:
    async def is_so() -> bool:
        return claim()

    await until(is_so, seconds=PATIENCE_S)
