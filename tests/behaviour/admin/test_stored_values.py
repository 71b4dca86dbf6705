"""Rows that commit 79130e09 stored, under this tree: rows of every kind, entity tags, cursors, secrets and the trail.

`tests/golden` has the rows, which that commit's own code wrote.
"""

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from sqlalchemy import select

from gateway.admin.routes.index import ENDPOINTS
from gateway.domain.identifiers import TenantId
from gateway.kinds.index import KINDS
from gateway.kinds.members import settable
from gateway.kinds.singletons import SINGLETONS
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.store.secret_keys.sealed_values import SEALED_TABLES, SealedTable
from gateway.store.tables import data_keys
from tests.golden.objects import ACME, COLLECTIONS
from tests.golden.objects import SINGLETONS as STORED_ONCE
from tests.golden.values import KEYS, REPEATED, load, restore
from tests.support.gateway import SECRET_KEY, RunningGateway, running_gateway
from tests.support.manifests import contains
from tests.support.servers import TestDatabase, TestServers
from tests.surface.canonical import Json

SEALED = {
    "secrets": {"s3cret-of-source"},
    "credentials": {"s3cret-of-vendor", "s3cret-of-header", "s3cret-of-the-client", "whsec_"},
    "issuers": {"s3cret-of-sign-in"},
    "introspection_secrets": {"s3cret-of-introspection"},
}
"""Texts that the sealed values of a table contain."""


@pytest.fixture(scope="module")
def stored() -> Json:
    """The file."""
    return load()


@pytest.fixture(scope="module")
async def old_database(servers: TestServers) -> AsyncGenerator[TestDatabase]:
    """The rows of that commit, migrated to this tree."""
    with servers.database(), servers.empty_database() as database:
        await restore(database)
        yield database


@pytest.fixture(scope="module")
async def successor(old_database: TestDatabase, servers: TestServers) -> AsyncGenerator[RunningGateway]:
    """A gateway of this tree over them."""
    with servers.held_redis() as redis_url:
        async with running_gateway(old_database.app_url, redis_url) as gateway:
            yield gateway


def test_the_file_has_rows_of_every_kind(stored: Json) -> None:
    """Ours: the 18 collections and 5 singletons of that commit, each list with a cursor (ADM-1)."""
    lists = {page["path"].partition("?")[0] for page in stored["pages"]}
    assert lists == {"/tenants", *(f"{ACME}/{plural}" for plural in COLLECTIONS)}
    assert len(lists) == 18
    paths = {one["path"] for one in stored["objects"]}
    assert {f"{ACME}/{path}" for path in STORED_ONCE} <= paths
    assert {path.rpartition("/")[0] for path in paths} >= lists
    assert {single.path for single in SINGLETONS} <= STORED_ONCE.keys()
    assert {kind.plural for kind in KINDS} <= {path.rpartition("/")[2] for path in COLLECTIONS} | {"tenants"}


async def test_sealed_values_open(old_database: TestDatabase, stored: Json) -> None:
    """Ours: every value that was sealed then opens with the same key, and is what was sent (TEN-4)."""
    secrets = {one["secret"] for one in stored["secrets"] if "/webhook" in one["path"]}
    expected = {**SEALED, "webhooks": secrets, "webhook_endpoints": secrets}
    opened = {sealed.table.name: found async for sealed, found in _opened(old_database, stored) if found}
    assert opened.keys() == expected.keys()
    assert [text for name, texts in SEALED.items() for text in texts if text not in "".join(opened[name])] == []
    signing = "".join(opened["webhooks"] + opened["webhook_endpoints"])
    assert [secret for secret in secrets if secret not in signing] == []
    assert {name: len(texts) for name, texts in opened.items()} == {
        "secrets": 1,
        "credentials": 4,
        "webhooks": 2,
        "webhook_endpoints": 2,
        "issuers": 1,
        "introspection_secrets": 1,
    }


async def test_ids_tags_and_members_are_those_of_then(successor: RunningGateway, stored: Json) -> None:
    """Ours: a client that kept an id or an entity tag goes on with it; `If-Match` accepts the tag (ADM-1)."""
    for one in stored["objects"]:
        answer = await successor.admin.get(one["path"])
        assert answer.status_code == 200, (one["path"], answer.text)
        assert answer.headers["etag"] == one["etag"], one["path"]
        body = answer.json()
        assert [(name, body.get(name)) for name in ("id", "name", "slug", "uri") if name in one["body"]] == [
            (name, one["body"][name]) for name in ("id", "name", "slug", "uri") if name in one["body"]
        ]


async def test_a_put_of_a_shown_object_changes_nothing(successor: RunningGateway, stored: Json) -> None:
    """Ours: each engine reads the rows of then, and a PUT under their tag writes neither version nor entry (ADM-1)."""
    before = await _entries(successor)
    for path, members in _declared(stored):
        old = next(one for one in stored["objects"] if one["path"] == path)
        shown = (await successor.admin.get(path)).json()
        body = {**old["body"], "safety": old["body"].get("declared_safety", old["body"].get("safety"))}
        of_then = {name: body[name] for name in members if name in old["body"]}
        if "ceilings" not in path:  # it showed the ceilings in force, not the stored ones
            assert contains({name: shown[name] for name in of_then}, of_then), path
        kept = await successor.admin.put(path, json=shown, headers={"if-match": old["etag"]})
        assert (kept.status_code, kept.headers.get("etag")) == (200, old["etag"]), (path, kept.text)
    assert await _entries(successor) == before


async def test_cursors_of_an_earlier_release_continue(successor: RunningGateway, stored: Json) -> None:
    """Ours: a client that reads a list while the gateway is upgraded gets the next page (ADM-1)."""
    for page in stored["pages"]:
        answer = await successor.admin.get(f"{page['path']}&cursor={page['cursor']}")
        assert answer.status_code == 200, (page["path"], answer.text)
        assert [item["id"] for item in answer.json()["items"]] == page["next"], page["path"]


async def test_keys_and_repeated_requests_of_then_are_known(successor: RunningGateway, stored: Json) -> None:
    """Ours: a key authenticates, and the response under an `Idempotency-Key` is repeated (ADM-1, TEN-4)."""
    made = next(one for one in stored["secrets"] if one["path"] == KEYS)
    headers = {"idempotency-key": REPEATED, "content-type": "application/json"}
    again = await successor.admin.post(KEYS, content=made["sent"], headers=headers)
    assert (again.status_code, again.headers.get("idempotency-replayed")) == (201, "true")
    assert again.json()["key"] == made["key"]
    listed = await successor.rpc("acme/readers", made["key"], "tools/list")
    assert {tool["name"] for tool in listed.json()["result"]["tools"]} >= {"say", "tell"}


async def test_the_trail_of_then_is_whole(successor: RunningGateway, stored: Json) -> None:
    """Ours: entries, places and signed heads of then verify beside those of this tree (SAF-4)."""
    trail = (await successor.admin.get(f"{ACME}/audit/verify")).raise_for_status().json()
    assert trail["ok"], trail
    entries = await _entries(successor)
    assert entries
    assert {row["id"] for row in stored["rows"]["audit_entries"]} >= {entry["id"] for entry in entries}


async def _opened(database: TestDatabase, stored: Json) -> AsyncGenerator[tuple[SealedTable, list[str]]]:
    """The sealed tables, each with the texts that its sealed values of the tenant `acme` hold."""
    cipher = EnvelopeCipher([SECRET_KEY])
    tenant = TenantId(next(row["id"] for row in stored["rows"]["tenants"] if row["slug"] == "acme"))
    async with Store(database.app_url) as store, store.upkeep(tenant) as db:
        for sealed in SEALED_TABLES:
            rows = sealed.table
            of_key = (data_keys.c.tenant_id == rows.c.tenant_id) & (data_keys.c.id == rows.c.data_key_id)
            query = select(*rows.c, data_keys.c.wrapped.label("data_key")).join_from(rows, data_keys, of_key)
            yield (
                sealed,
                [
                    cipher.open(tenant, row["data_key"], row[column], *sealed.context(row, column)).decode()
                    for row in (await db.execute(query)).mappings()
                    for column in sealed.columns
                    if row[column] is not None
                ],
            )


async def _entries(gateway: RunningGateway) -> list[Any]:
    answer = await gateway.admin.get(f"{ACME}/audit?kind=change&limit=200")
    items: list[Any] = answer.raise_for_status().json()["items"]
    return items


def _declared(stored: Json) -> Iterator[tuple[str, list[str]]]:
    """Paths of the stored objects of declared kinds that can be replaced, each with the members that admins set."""
    replaced = {endpoint.path for endpoint in ENDPOINTS if endpoint.method == "PUT"}
    members = {
        f"{ACME}/{kind.plural}": [one.name for one in settable(kind.of)]
        for kind in KINDS
        if f"/tenants/{{t}}/{kind.plural}/{{{kind.address}}}" in replaced
    }
    assert len(members) > 5
    for one in stored["objects"]:
        if (names := members.get(one["path"].rpartition("/")[0])) is not None and one["body"].get("created_at"):
            yield one["path"], names
    for single in SINGLETONS:
        yield f"{ACME}/{single.path}", [one.name for one in settable(single.of)]
