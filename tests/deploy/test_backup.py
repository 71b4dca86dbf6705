"""Backup and restore as docs/backup.md has them: dumped here, restored on another server, used with the same keys."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from anyio import to_thread

from gateway.embedded.binaries import postgres_programs
from gateway.errors import SecretUnreadable
from gateway.store import secrets
from gateway.store.database.migrations import migrate
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.store.sources import sources
from gateway.store.tenants import page
from tests.deploy.compose import ROOT
from tests.deploy.topology import make_secrets
from tests.support.documents import secured
from tests.support.gateway import running_gateway
from tests.support.servers import TestDatabase, TestServers, execute, running_servers
from tests.support.upstream import recording_upstream

COMMANDS = re.findall(r"^\$ ((?:pg_\w+|psql) .*)$", (ROOT / "docs/backup.md").read_text(), re.MULTILINE)


def _programs() -> Path:
    """PostgreSQL's own, of the version that the tests' server has."""
    return postgres_programs(None, Path("/nonexistent"))


def _run(program: str, superuser_url: str, *arguments: str) -> str:
    """One of PostgreSQL's programs, as the superuser of a server of the tests unless an argument names another."""
    socket_folder = parse_qs(urlsplit(superuser_url).query)["host"][0]
    command = [str(_programs() / program), f"--host={socket_folder}", "--username=postgres", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[TestServers]:
    """Another PostgreSQL, new and empty, with the logins that `roles.sql` makes and no others."""
    secrets_folder = make_secrets(tmp_path / "secrets", database_url="-", redis_url="-")
    with running_servers() as servers:
        url = servers.superuser_url
        for statement in ("drop database gateway", "drop role gateway_owner, gateway_app, gateway_definer"):
            _run("psql", url, "--quiet", f"--command={statement}", "postgres")
        _run(
            "psql",
            url,
            "--quiet",
            f"--set=secrets={secrets_folder}",
            f"--file={ROOT}/deploy/compose/roles.sql",
            "postgres",
        )
        yield servers


async def test_the_logins_of_a_new_server_suffice_for_the_gateway(elsewhere: TestServers) -> None:
    """Ours: after roles.sql the owner migrates, and what serves is held to its walls (TEN-5)."""
    assert await migrate(elsewhere.urls.migration_database_url)
    async with Store(elsewhere.urls.database_url) as store:
        await store.check()
    roles = _run(
        "psql", elsewhere.superuser_url, "--tuples-only", "--no-align", "postgres",
        "--command=select rolname, rolsuper, rolbypassrls, coalesce(rolpassword like 'SCRAM-SHA-256%', false) "
        "from pg_authid where rolname like 'gateway%' order by 1",
    )  # fmt: skip

    assert roles.split() == ["gateway_app|f|f|t", "gateway_definer|f|f|f", "gateway_owner|f|f|t"]


async def test_an_administrator_that_is_no_superuser_makes_the_same_logins(tmp_path: Path) -> None:
    """Ours: managed servers have no superuser; roles.sql needs only the right to make roles (SRV-6)."""
    secrets_folder = make_secrets(tmp_path / "secrets", database_url="-", redis_url="-")
    with running_servers() as servers:
        for statement in (
            "drop database gateway",
            "drop role gateway_owner, gateway_app, gateway_definer",
            "create role administrator login createrole createdb nosuperuser",
        ):
            _run("psql", servers.superuser_url, "--quiet", f"--command={statement}", "postgres")
        roles = [
            "--username=administrator",
            f"--set=secrets={secrets_folder}",
            f"--file={ROOT}/deploy/compose/roles.sql",
        ]
        _run("psql", servers.superuser_url, "--quiet", *roles, "postgres")
        connect = "--command=select has_database_privilege('administrator', 'gateway', 'connect')"
        left = _run("psql", servers.superuser_url, "--tuples-only", "--no-align", "postgres", connect)

        assert await migrate(servers.urls.migration_database_url)
        async with Store(servers.urls.database_url) as store:
            await store.check()
        assert left.split() == ["f"], "who made the logins has no key to the house"


@pytest.mark.parametrize("commands", [COMMANDS[:2], COMMANDS[2:]], ids=["superuser", "owner"])
async def test_a_dump_works_on_another_server(
    database: TestDatabase,
    servers: TestServers,
    elsewhere: TestServers,
    redis_url: str,
    tmp_path: Path,
    commands: list[str],
) -> None:
    """Ours: keys, secrets and the audit trail come through a restore, also without a superuser (TEN-4, SAF-4)."""
    dump = tmp_path / "gateway.dump"
    async with recording_upstream() as upstream:
        allowed = [upstream.authority]
        async with running_gateway(database.app_url, redis_url, egress_allow=allowed) as gateway:
            await gateway.create_tenant("acme")
            document = secured(upstream.url)
            await gateway.import_document("acme", document, credentials={"token": "sealed-and-restored"})
            key = await gateway.create_key("acme")
            for _ in range(3):
                await gateway.rpc("acme", key, "tools/call", {"name": "op_0000", "arguments": {}})
        upstream.seen.clear()

        await to_thread.run_sync(_dump_and_restore, commands, database.superuser_url, elsewhere.superuser_url, dump)

        other = elsewhere.urls
        async with running_gateway(other.database_url, other.redis_url, egress_allow=allowed) as restored:
            called = await restored.rpc("acme", key, "tools/call", {"name": "op_0000", "arguments": {}})
            doctor = (await restored.admin.get("/doctor")).json()
            trail = (await restored.admin.get("/tenants/acme/audit/verify")).json()
    assert called.status_code == 200, called.text
    assert [seen.header("x-token") for seen in upstream.seen] == ["sealed-and-restored"]
    found = {finding["check"]: finding["status"] for finding in doctor["findings"]}
    assert found["secrets"] == "ok", doctor
    assert "failed" not in found.values(), doctor
    assert trail["ok"], trail
    assert len(trail["writers"]) >= 3, "the catalog's, the dumped gateway's, the restored one's"
    assert servers.superuser_url != elsewhere.superuser_url


async def test_a_restored_trail_that_was_shortened_is_found_out(
    database: TestDatabase, redis_url: str, elsewhere: TestServers, tmp_path: Path
) -> None:
    """Ours: an entry that is missing in a restored trail is seen (SAF-4)."""
    async with running_gateway(database.app_url, redis_url) as gateway:
        for slug in ("acme", "beta"):
            await gateway.create_tenant(slug)
            await gateway.create_key(slug)
            await gateway.create_key(slug)
    dump = tmp_path / "gateway.dump"
    await to_thread.run_sync(_dump_and_restore, COMMANDS[:2], database.superuser_url, elsewhere.superuser_url, dump)
    restored = elsewhere.superuser_url.replace("/postgres?", "/gateway?")
    await execute(restored, "delete from audit_entries where seq = (select min(seq) + 1 from audit_entries)")

    other = elsewhere.urls
    async with running_gateway(other.database_url, other.redis_url) as gateway:
        trails = [(await gateway.admin.get(f"/tenants/{slug}/audit/verify")).json() for slug in ("acme", "beta")]
    assert [(trail["ok"], trail["writers"][0]["fault"]["kind"]) for trail in trails] == [(False, "missing")] * 2


def _dump_and_restore(commands: Sequence[str], source: str, target: str, dump: Path) -> None:
    """Commands of the page, word for word: one half dumps here, the other restores elsewhere."""
    for number, command in enumerate(commands):
        is_new = number >= len(commands) // 2
        program, *arguments = command.replace("gateway.dump", str(dump)).split()
        if not is_new:
            assert arguments.pop() == "gateway"
            arguments.append(urlsplit(source).path.removeprefix("/"))
        _run(program, target if is_new else source, *arguments)


async def test_with_other_keys_the_secrets_stay_shut(database: TestDatabase, redis_url: str) -> None:
    """Ours: a dump without the keys shows no credential (TEN-4)."""
    async with recording_upstream() as upstream, running_gateway(database.app_url, redis_url) as gateway:
        await gateway.create_tenant("acme")
        await gateway.import_document("acme", secured(upstream.url), credentials={"token": "nobody-reads-this"})
    plain = await to_thread.run_sync(_run, "pg_dump", database.superuser_url, urlsplit(database.superuser_url).path[1:])

    assert "nobody-reads-this" not in plain
    async with Store(database.app_url) as store:
        async with store.unscoped() as db:
            tenant = (await page(db, after=None, limit=1))[0].id
        async with store.transaction(tenant) as db:
            source = (await sources.page(tenant, db, after=None, limit=1))[0]
            with pytest.raises(SecretUnreadable):
                await secrets.load(tenant, db, EnvelopeCipher(["another-key-0123456789-0123456789"]), source.id)
