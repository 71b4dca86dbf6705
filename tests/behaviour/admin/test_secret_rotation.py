"""The change of the secret key of an installation that serves, from the new key's arrival to the old one's removal."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.errors import BrokenSetting
from gateway.store.database.connection import connect_owner
from gateway.store.encryption import EnvelopeCipher
from gateway.store.secret_keys.sealed_values import SEALED_TABLES
from tests.behaviour.cli.conftest import environment
from tests.support.commands import run_gateway
from tests.support.documents import pets, secured
from tests.support.gateway import OPERATOR_KEY, RunningGateway, running_gateway
from tests.support.replicas import running_replicas, until
from tests.support.servers import TestDatabase, TestServers, dump, execute
from tests.support.upstream import RecordingUpstream, recording_upstream

OLD, NEW, OTHER = ("old-secret-key-" * 3, "new-secret-key-" * 3, "another-secret-key-" * 2)
OLD_NAME, NEW_NAME, OTHER_NAME = (EnvelopeCipher([key]).names[0] for key in (OLD, NEW, OTHER))
UNUSED = {"mcp_tasks", "issuers", "introspection_secrets", "sign_ins", "accounts"}
"""Sealed tables without rows here; `tests/integration/store/test_resealing.py` has rows of them."""
CANARY = "canary-7f3e"


@dataclass(frozen=True, slots=True)
class Installation:
    """A database and a Redis at which gateways with different secret keys start."""

    database: TestDatabase
    redis_url: str
    upstream: RecordingUpstream

    @asynccontextmanager
    async def gateway(self, *keys: str) -> AsyncGenerator[RunningGateway]:
        """A replica with these secret keys."""
        reachable = [self.upstream.authority]
        started = running_gateway(self.database.app_url, self.redis_url, egress_allow=reachable, secret_keys=keys)
        async with started as gateway:
            yield gateway

    async def rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        """Rows of the database, past row-level security."""
        connection = await connect_owner(self.database.superuser_url)
        try:
            return [tuple(row.values()) for row in await connection.fetch(query)]
        finally:
            await connection.close()


@pytest.fixture
async def installation(servers: TestServers) -> AsyncGenerator[Installation]:
    with servers.database() as database:
        async with recording_upstream() as upstream:
            yield Installation(database, servers.empty_redis(), upstream)


async def _furnish(gateway: RunningGateway, upstream: RecordingUpstream, slug: str) -> str:
    """A tenant with something sealed of every kind; return an API key."""
    await gateway.create_tenant(slug)
    await gateway.import_document(slug, secured(upstream.url), credentials={"token": f"{CANARY}-source"})
    await gateway.import_document(slug, pets(upstream.url), name="pets", prefix="p_")
    bodies: dict[str, dict[str, Any]] = {
        "credentials": {
            "name": "vendor",
            "place": "bearer",
            "origins": [upstream.url],
            "value": f"{CANARY}-named",
        },
        "webhooks": {"name": "cms"},
        "webhook-endpoints": {"name": "chat", "url": f"{upstream.url}/hook", "kinds": ["approval.requested"]},
    }
    for noun, body in bodies.items():
        headers = {"idempotency-key": f"{slug}-{noun}"}
        made = await gateway.admin.post(f"/tenants/{slug}/{noun}", json=body, headers=headers)
        assert made.status_code == 201, made.text
    (await gateway.admin.patch(f"/tenants/{slug}/policy", json={"dangerous": "approve"})).raise_for_status()
    key = await gateway.create_key(slug)
    asked = await gateway.rpc(slug, key, "tools/call", {"name": "p_delete_pet", "arguments": {"id": 7}})
    assert asked.status_code == 200, asked.text
    return key


async def _state(gateway: RunningGateway) -> dict[str, Any]:
    found = (await gateway.admin.get("/secrets")).raise_for_status().json()
    return {**found, "keys": {key["name"]: key for key in found["keys"]}}


async def _rotate(gateway: RunningGateway, seen_by: RunningGateway | None = None) -> dict[str, Any]:
    begun = await gateway.admin.post("/secrets/rotate")
    assert begun.status_code == 202, begun.text

    async def is_finished() -> bool:
        rotation = (await _state(seen_by or gateway))["rotation"]
        return bool(rotation["finished_at"])

    await until(is_finished, seconds=30)
    return await _state(seen_by or gateway)


async def _works(gateway: RunningGateway, upstream: RecordingUpstream, slug: str, key: str) -> None:
    """Everything that was sealed opens, and the audit trail is whole."""
    upstream.reset()
    called = (await gateway.rpc(slug, key, "tools/call", {"name": "op_0000", "arguments": {}})).json()
    assert called["result"]["isError"] is False, called
    assert any(CANARY in value for request in upstream.seen for _, value in request.headers)
    [approval] = (await gateway.admin.get(f"/tenants/{slug}/approvals")).json()["items"]
    assert approval["request"]["method"] == "DELETE"
    rotated = await gateway.admin.post(f"/tenants/{slug}/webhooks/cms/rotate")
    assert rotated.status_code == 200, rotated.text
    tested = await gateway.admin.post(f"/tenants/{slug}/webhook-endpoints/chat/rotate")
    assert tested.status_code == 200, tested.text
    body = {"name": "cms"}
    again = await gateway.admin.post(
        f"/tenants/{slug}/webhooks", json=body, headers={"idempotency-key": f"{slug}-webhooks"}
    )
    assert again.headers.get("idempotency-replayed") == "true", again.text
    trail = (await gateway.admin.get(f"/tenants/{slug}/audit/verify")).json()
    assert trail["ok"], trail


async def test_a_secret_key_is_replaced_while_two_replicas_serve(installation: Installation) -> None:
    """Ours: everything is sealed again, the old key can go, and nothing is lost with it (IDN-5, TEN-4)."""
    upstream = installation.upstream
    async with installation.gateway(OLD) as gateway:
        keys = {slug: await _furnish(gateway, upstream, slug) for slug in ("acme", "globex")}
        unused = await gateway.create_key("acme")
    async with installation.gateway(OLD, NEW) as gateway:
        assert (await _state(gateway))["keys"][NEW_NAME]["needed_by"] == {}

    async with installation.gateway(NEW, OLD) as one, installation.gateway(NEW, OLD) as two:
        preview = (await one.admin.post("/secrets/rotate", json={"dry_run": True})).json()
        [old] = [key for key in preview["keys"] if key["name"] == OLD_NAME]
        sealed = {table.table.name for table in SEALED_TABLES} - UNUSED
        assert sealed | {"data_keys", "idempotency_records", "api_keys"} == old["needed_by"].keys()
        assert preview["rotation"] is None

        done = await _rotate(one, seen_by=two)
        assert (done["rotation"]["tenants_done"], done["rotation"]["unreadable"]) == (2, 0)
        assert done["keys"][OLD_NAME]["needed_by"] == {"api_keys": 3}
        assert [key["last_used_at"] for key in done["keys"][OLD_NAME]["api_keys"]].count(None) >= 1
        assert not done["keys"][OLD_NAME]["can_be_removed"]
        for slug, key in keys.items():
            await _works(one, upstream, slug, key)

    async with installation.gateway(NEW, OLD) as gateway:
        state = await _state(gateway)
        [left] = state["keys"][OLD_NAME]["api_keys"]
        assert left["id"] == f"key_{unused.split('_')[2]}"
        [finding] = [
            one for one in (await gateway.admin.get("/doctor")).json()["findings"] if one["check"] == "secret_rotation"
        ]
        assert "1 API keys" in finding["detail"]
        (await gateway.admin.post(f"/tenants/acme/keys/{left['id']}/revoke")).raise_for_status()
        assert (await _state(gateway))["keys"][OLD_NAME]["can_be_removed"]
        [finding] = [
            one for one in (await gateway.admin.get("/doctor")).json()["findings"] if one["check"] == "secret_rotation"
        ]
        assert f"the old secret key {OLD_NAME} is no longer needed" in finding["detail"]

    async with installation.gateway(NEW) as gateway:
        for slug, key in keys.items():
            await _works(gateway, upstream, slug, key)
    wrapped = await installation.rows("select encode(substring(wrapped from 2 for 8), 'hex') from data_keys")
    assert set(wrapped) == {(NEW_NAME,)}
    assert CANARY not in await dump(installation.database.superuser_url)


async def test_a_replica_with_the_wrong_keys_does_not_start(installation: Installation) -> None:
    """Ours: a wrong, a removed and a lost key are refused at the start, which changes nothing (IDN-5)."""
    async with installation.gateway(OLD) as gateway:
        key = await _furnish(gateway, installation.upstream, "acme")
    before = await installation.rows("select wrapped from data_keys")
    with pytest.raises(BrokenSetting, match=OLD_NAME):
        async with installation.gateway(OTHER):
            pass
    async with installation.gateway(OLD, NEW):
        pass
    with pytest.raises(BrokenSetting, match=f"lacks the secret key {OLD_NAME}.*gateway secrets forget"):
        async with installation.gateway(NEW):
            pass
    assert await installation.rows("select wrapped from data_keys") == before

    await execute(installation.database.superuser_url, "update secret_keys set forgotten_at = now()")
    with pytest.raises(BrokenSetting, match="none of the secret keys"):
        async with installation.gateway(OTHER):
            pass
    async with installation.gateway(NEW) as gateway:
        assert (await gateway.rpc("acme", key, "tools/list")).status_code == 401
        lost = (await _rotate(gateway))["rotation"]
        assert lost["values_done"] == 0
    async with installation.gateway(OLD) as gateway:
        assert (await gateway.rpc("acme", key, "tools/list")).status_code == 200


async def test_an_installation_of_an_earlier_release_is_adopted_with_its_keys(installation: Installation) -> None:
    """Ours: the first start of this release knows the keys from what is stored, and refuses a wrong one (IDN-5)."""
    async with installation.gateway(OLD) as gateway:
        key = await _furnish(gateway, installation.upstream, "acme")
    forget = "delete from secret_keys; update keys set pepper = null"
    for statement in forget.split(";"):
        await execute(installation.database.superuser_url, statement)
    with pytest.raises(BrokenSetting, match=OLD_NAME):
        async with installation.gateway(NEW):
            pass
    async with installation.gateway(NEW, OLD) as gateway:
        state = await _rotate(gateway)
        assert state["unmarked_api_keys"] >= 1
        assert not state["keys"][OLD_NAME]["can_be_removed"]
        await _works(gateway, installation.upstream, "acme", key)
    async with installation.gateway(NEW, OLD) as gateway:
        state = await _state(gateway)
        assert (state["unmarked_api_keys"], state["keys"][OLD_NAME]["can_be_removed"]) == (0, True)


async def test_a_rotation_waits_until_every_replica_has_the_key(installation: Installation) -> None:
    """Ours: a replica that could not read the result, or would seal with the old key, is named (IDN-5)."""
    async with installation.gateway(OLD) as late:
        await _furnish(late, installation.upstream, "acme")
        async with installation.gateway(NEW, OLD) as gateway:
            refused = await gateway.admin.post("/secrets/rotate")
            assert (refused.status_code, "lacks the secret key" in refused.json()["detail"]) == (409, True)
    async with installation.gateway(OLD, NEW), installation.gateway(NEW, OLD) as gateway:
        refused = await gateway.admin.post("/secrets/rotate")
        assert (refused.status_code, "put " in refused.json()["detail"]) == (409, True)
        assert (await _state(gateway))["rotation"] is None
    async with installation.gateway(NEW, OLD) as gateway:
        scopes = ("admin", "audit")
        for scope in scopes:
            key = await gateway.create_key("acme", scope)
            headers = {"authorization": f"Bearer {key}"}
            assert (await gateway.http.get("/admin/v1/secrets", headers=headers)).status_code == 403
            assert (await gateway.http.post("/admin/v1/secrets/rotate", headers=headers)).status_code == 403
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(_rotate, gateway)


async def test_a_rotation_continues_after_its_replica_was_killed(installation: Installation, tmp_path: Path) -> None:
    """Ours: kill -9 in the middle costs nothing but time; writers and calls go on meanwhile (IDN-5, SRV-4)."""
    upstream, slugs = installation.upstream, ("acme", "globex")
    async with installation.gateway(OLD) as gateway:
        keys = {slug: await _furnish(gateway, upstream, slug) for slug in slugs}
    url, reachable = installation.database.app_url, [upstream.authority]
    keyring = {"secret_keys": f"{NEW},{OLD}"}
    async with running_replicas(url, installation.redis_url, tmp_path, egress_allow=reachable, **keyring) as replicas:
        a, b = replicas.a, replicas.b
        holder = await connect_owner(installation.database.superuser_url)
        await holder.execute("begin")
        of_globex = "select id from tenants where slug = 'globex'"
        query = f"select id from credentials where tenant_id in ({of_globex}) for update"
        assert len(await holder.fetch(query)) == 1
        assert (await a.gateway.admin.post("/secrets/rotate")).status_code == 202

        async def is_in_the_middle() -> bool:
            return bool((await _state(b.gateway))["rotation"]["tenants_done"] == 1)

        await until(is_in_the_middle, seconds=20)
        a.kill()
        for slug, key in keys.items():
            called = (await b.gateway.rpc(slug, key, "tools/call", {"name": "op_0000", "arguments": {}})).json()
            assert called["result"]["isError"] is False, called
            body = {"name": "late", "place": "bearer", "origins": [upstream.url], "value": f"{CANARY}-late"}
            made = await b.gateway.admin.post(f"/tenants/{slug}/credentials", json=body)
            assert made.status_code == 201, made.text
        await holder.execute("rollback")
        await holder.close()
        await execute(installation.database.superuser_url, "update secret_rotation set leased_until = now()")

        async def is_finished() -> bool:
            return bool((await _state(b.gateway))["rotation"]["finished_at"])

        with b.hurrying():
            await until(is_finished, seconds=30)
        done = await _state(b.gateway)
        assert done["keys"][OLD_NAME]["needed_by"].keys() <= {"api_keys"}
        for slug, key in keys.items():
            await _works(b.gateway, upstream, slug, key)


async def test_the_command_rotates_shows_and_gives_up(installation: Installation, tmp_path: Path) -> None:
    """Ours: one command from the old key to the new one; a lost key is given up without a gateway (CLI-1, IDN-5)."""
    async with installation.gateway(OLD) as gateway:
        await _furnish(gateway, installation.upstream, "acme")

    async def run(*arguments: str, **variables: str) -> Any:
        done = await run_gateway(["secrets", *arguments], folder=tmp_path, variables=environment(**variables))
        return done.code, done.out, done.err

    async with installation.gateway(NEW, OLD) as gateway:
        near = {"GATEWAY_URL": gateway.url, "GATEWAY_OPERATOR_KEY": OPERATOR_KEY}
        code, out, _ = await run("rotate", "--dry-run", **near)
        assert (code, f"{OLD_NAME}  older" in out, "last rotation" in out) == (0, True, False)
        code, out, err = await run("rotate", **near)
        assert (code, f"to {NEW_NAME}, finished" in out, "1 tenants" in err) == (0, True, True), (out, err)
        code, out, _ = await run("status", "--json", **near)
        assert json.loads(out)["rotation"]["unreadable"] == 0
        assert "API keys that need an older secret key" in (await run("status", **near))[1]

    offline = {"GATEWAY_DATABASE_URL": installation.database.app_url, "GATEWAY_REDIS_URL": installation.redis_url}
    code, _, err = await run("forget", NEW_NAME, "--yes", GATEWAY_SECRET_KEYS=NEW, **offline)
    assert (code != 0, "is configured here" in err) == (True, True)
    code, _, err = await run("forget", "0123", "--yes", GATEWAY_SECRET_KEYS=NEW, **offline)
    assert (code != 0, OLD_NAME in err) == (True, True)
    code, out, err = await run("forget", OLD_NAME, "--yes", GATEWAY_SECRET_KEYS=NEW, **offline)
    assert (code, out) == (0, f"gave up {OLD_NAME}\n"), err
    async with installation.gateway(NEW) as gateway:
        assert (await _state(gateway))["keys"][OLD_NAME]["forgotten_at"] is not None
        trail = (await gateway.admin.get("/tenants/acme/audit/verify")).json()
        assert trail["ok"], trail
