"""A database or a Redis that has no room or no connection left: refused cleanly, nothing half done, nothing lost."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import anyio
import httpx

from gateway.store.database.connection import connect_owner
from tests.support.documents import pets
from tests.support.gateway import ACCEPT, RunningGateway, running_gateway
from tests.support.replicas import commanding
from tests.support.servers import TestDatabase, execute
from tests.support.upstream import RecordingUpstream, recording_upstream

NO_ROOM = """
create function no_room() returns trigger language plpgsql as
$$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
create trigger no_room before insert on audit_entries for each statement execute function no_room();
"""
WAITING = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'gateway'"
ROOM = "drop trigger no_room on audit_entries; drop function no_room();"


@dataclass(frozen=True, slots=True)
class Acme:
    """A tenant with the pets document."""

    gateway: RunningGateway
    upstream: RecordingUpstream
    key: str

    async def call(self, tool: str, **arguments: object) -> httpx.Response:
        """One call."""
        return await self.gateway.rpc("acme", self.key, "tools/call", {"name": tool, "arguments": arguments})

    async def works(self) -> bool:
        """True if a call and a change succeed."""
        answer = (await self.call("get_pet", id=7)).json()
        slug = f"t{len(self.upstream.seen)}"
        return (
            "structuredContent" in answer.get("result", {})
            and (await self.gateway.admin.post("/tenants", json={"slug": slug})).status_code == 201
        )


@asynccontextmanager
async def _acme(database: TestDatabase, redis_url: str, *, pool: int = 8) -> AsyncGenerator[Acme]:
    async with (
        recording_upstream() as upstream,
        running_gateway(
            database.app_url, redis_url, egress_allow=[upstream.authority], log_level="error", database_pool=pool
        ) as gateway,
    ):
        await gateway.create_tenant("acme")
        await gateway.import_document("acme", pets(upstream.url))
        yield Acme(gateway, upstream, await gateway.create_key("acme"))


def _has_retry_hint(answer: httpx.Response) -> bool:
    return answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1 and "No space left" not in answer.text


async def test_a_full_disk_refuses_changes_and_calls_and_loses_nothing(database: TestDatabase, redis_url: str) -> None:
    """Ours: no change without its audit entry, no harm done unrecorded, and all is well with room again (SRV-4)."""
    async with _acme(database, redis_url) as acme:
        assert await acme.works()
        seen = len(acme.upstream.seen)
        await execute(database.superuser_url, NO_ROOM)

        change = await acme.gateway.admin.post("/tenants", json={"slug": "globex"})
        harmful = await acme.call("create_pet", body={"name": "Rex"})
        harmless = await acme.call("get_pet", id=7)
        listed = await acme.gateway.rpc("acme", acme.key, "tools/list")

        assert _has_retry_hint(change)
        assert harmful.json()["error"]["code"] == 50300
        assert "structuredContent" in harmless.json()["result"]  # its record waits in Redis for room
        assert [one.method for one in acme.upstream.seen[seen:]] == ["GET"]  # what changes nothing may have run
        assert len(listed.json()["result"]["tools"]) == 4
        await execute(database.superuser_url, ROOM)
        assert await acme.works()
        assert (await acme.gateway.admin.get("/tenants/globex")).status_code == 404


async def test_a_pool_without_a_free_connection_refuses_in_time(database: TestDatabase, redis_url: str) -> None:
    """Ours: a caller that waits too long gets a retry hint, and the process stays alive (SRV-4)."""
    async with _acme(database, redis_url, pool=1) as acme:
        assert await acme.works()
        holder = await connect_owner(database.superuser_url)
        answers: dict[str, httpx.Response] = {}

        async def ask(name: str, path: str) -> None:
            answers[name] = await acme.gateway.admin.get(path)

        try:
            await holder.execute("begin; lock table keys in access exclusive mode")
            with anyio.fail_after(60):
                async with anyio.create_task_group() as group:
                    group.start_soon(ask, "first", "/tenants/acme/keys")
                    while not await holder.fetchval(WAITING):  # noqa: ASYNC110  # PostgreSQL sends no event
                        await anyio.sleep(0.01)
                    await ask("second", "/tenants")
                    assert (await acme.gateway.http.get("/healthz")).status_code == 200
                    await holder.execute("rollback")
        finally:
            await holder.close()

        assert _has_retry_hint(answers["second"])
        assert answers["first"].status_code == 200
        assert await acme.works()


@contextmanager
def _read_only(redis_url: str) -> Generator[None]:
    """A Redis that refuses every write, as it does when its disk is full."""
    with commanding(redis_url) as command:
        command("ACL", "SETUSER", "default", "-@write")
        try:
            yield
        finally:
            command("ACL", "SETUSER", "default", "+@write")


async def test_a_redis_that_takes_no_writes_costs_no_call(database: TestDatabase, redis_url: str) -> None:
    """Ours: limits are counted here instead; what cannot be without Redis is refused with a hint (SRV-4)."""
    client = {"name": "t", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    async with _acme(database, redis_url) as acme:
        with _read_only(redis_url):
            for _ in range(5):
                assert await acme.works()
            opened = await acme.gateway.http.post(
                "/t/acme/mcp",
                json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
                headers={"authorization": f"Bearer {acme.key}", "accept": ACCEPT},
            )
            assert _has_retry_hint(opened)
        assert await acme.works()
