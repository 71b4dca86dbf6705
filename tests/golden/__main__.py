"""Writes the stored values of commit 79130e09: its own code stores objects of every kind, and all rows are kept.

`python -m tests.golden` needs the history of this repository. The file is never renewed for a later release.
"""

import json
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from gateway.store.database.connection import connect_owner
from tests.deploy.old_release import RELEASES, unpack_old_release
from tests.deploy.topology import clean_environment
from tests.golden.objects import ACME, COLLECTIONS, SINGLETONS, Upstreams, requests
from tests.golden.values import FILE, KEYS, REPEATED, SCHEMA
from tests.support.gateway import OPERATOR_KEY, SECRET_KEY, RunningGateway
from tests.support.issuer import LocalProvider, OpaqueTokens, new_issuer
from tests.support.replicas import Replica, grant_redis
from tests.support.servers import TestServers, running_servers
from tests.support.upstream import recording_upstream
from tests.surface.canonical import write

PUBLIC = "http://127.0.0.1:9"
_UNREAD = frozenset({"alembic_version", "due_work"})
"""Tables of which no row is kept: a gateway over the rows has nothing to poll."""
_FOREVER = "2099-12-31T23:59:59+00:00"
_TABLES = "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by relname"


async def main(servers: TestServers, folder: Path) -> None:
    """Store, read and write the file."""
    release = unpack_old_release(folder, RELEASES[SCHEMA])
    redis_url = servers.empty_redis()
    with servers.empty_database() as database:
        release.migrate(database.owner_url, database.app_url, SECRET_KEY)
        async with _upstreams() as (at, allowed):
            environment = (
                clean_environment()
                | release.environment
                | {
                    "GATEWAY_DATABASE_URL": database.app_url,
                    "GATEWAY_SECRET_KEYS": SECRET_KEY,
                    "GATEWAY_OPERATOR_KEY": OPERATOR_KEY,
                    "GATEWAY_EGRESS_ALLOW": allowed,
                    "GATEWAY_PUBLIC_URL": PUBLIC,
                }
            )
            replica = Replica("old", folder, environment, redis_url, python=str(release.python))
            grant_redis(redis_url, [replica.redis_user])
            try:
                await replica.start()
                found = await _store(replica.gateway, at)
            finally:
                await replica.close()
        rows = await _rows(database.superuser_url)
    FILE.write_text(write({**found, "rows": rows}))


@asynccontextmanager
async def _upstreams() -> AsyncGenerator[tuple[Upstreams, str]]:
    async with AsyncExitStack() as stack:
        api, provider, opaque = [await stack.enter_async_context(recording_upstream()) for _ in range(3)]
        LocalProvider(new_issuer(provider)).publish()
        OpaqueTokens(new_issuer(opaque), secret="s3cret-of-introspection")
        at = Upstreams(api=api.url, provider=provider.url, opaque=opaque.url)
        yield at, ",".join(one.authority for one in (api, provider, opaque))


async def _store(gateway: RunningGateway, at: Upstreams) -> dict[str, Any]:
    made: list[dict[str, Any]] = []
    for sent in requests(at):
        headers = {} if any(one["path"] == KEYS for one in made) or sent.path != KEYS else {"idempotency-key": REPEATED}
        answer = await gateway.admin.request(sent.method, sent.path, json=sent.body, headers=headers)
        assert answer.is_success, (sent.path, answer.text)
        secrets = {name: value for name, value in answer.json().items() if name in {"key", "secret"} and value}
        if secrets:
            made.append({"path": sent.path, "sent": answer.request.content.decode(), **secrets})
    lists = ["/tenants", *(f"{ACME}/{plural}" for plural in COLLECTIONS)]
    pages = [page for path in lists for page in await _pages(gateway, path)]
    objects = [item for path in lists for item in await _objects(gateway, path)]
    singles = [await _object(gateway, f"{ACME}/{path}") for path in SINGLETONS]
    return {"objects": [*objects, *singles], "pages": pages, "secrets": made}


async def _pages(gateway: RunningGateway, path: str) -> list[dict[str, Any]]:
    """The first cursor of each order of a list, with the ids that follow it."""
    found: list[dict[str, Any]] = []
    for sort in ("", "name", "-name", "created_at", "-created_at"):
        query = f"?limit=1{f'&sort={sort}' if sort else ''}"
        answer = await gateway.admin.get(path + query)
        if answer.status_code == 400:
            continue
        cursor = answer.raise_for_status().json()["next_cursor"]
        assert cursor, path
        following = (await gateway.admin.get(f"{path}{query}&cursor={cursor}")).raise_for_status().json()["items"]
        found.append({"path": path + query, "cursor": cursor, "next": [item["id"] for item in following]})
    return found


async def _objects(gateway: RunningGateway, path: str) -> list[dict[str, Any]]:
    items = (await gateway.admin.get(path)).raise_for_status().json()["items"]
    return [await _object(gateway, f"{path}/{item['id']}") for item in items]


async def _object(gateway: RunningGateway, path: str) -> dict[str, Any]:
    answer = (await gateway.admin.get(path)).raise_for_status()
    return {"path": path, "etag": answer.headers["etag"], "body": answer.json()}


async def _rows(url: str) -> dict[str, list[Any]]:
    connection = await connect_owner(url)
    try:
        found: dict[str, list[Any]] = {}
        for table in [str(row["relname"]) for row in await connection.fetch(_TABLES)]:
            rows = await connection.fetch(f'select to_jsonb(t)::text as row from "{table}" as t order by 1')
            if rows and table not in _UNREAD:
                found[table] = [json.loads(str(row["row"])) for row in rows]
        for row in found["idempotency_records"]:
            row["expires_at"] = _FOREVER  # no test depends on the time at which it runs
        return found
    finally:
        await connection.close()


def _run(action: Callable[[TestServers, Path], Any]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="golden-"))
    try:
        with running_servers() as servers:
            anyio.run(action, servers, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _run(main)
