"""Primitives, profiles and named credentials in the database: what goes in comes out, and nothing else."""

from dataclasses import replace
from typing import Any

import orjson
import pytest
from sqlalchemy import select, update

from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family
from gateway.domain.tenancy.guardrails import HookFailure
from gateway.domain.tenancy.own_primitives import to_primitive
from gateway.domain.tenancy.policy import Policy, Safety
from gateway.errors import NameTaken, NotFound, SecretUnreadable
from gateway.store import operations, primitives
from gateway.store.engine import Store
from gateway.store.identity import keys
from gateway.store.kinds.credentials import CREDENTIALS, SealedCredential, open_named
from gateway.store.kinds.guardrails import GUARDRAILS
from gateway.store.kinds.keys import KEYS
from gateway.store.kinds.primitives import ROWS
from gateway.store.kinds.profiles import PROFILES
from gateway.store.kinds.singletons import POLICY
from gateway.store.kinds.tenants import TENANTS
from tests.integration.store.samples import (
    NOW,
    SEALER,
    make_credential,
    make_guardrail,
    make_key,
    make_operation,
    make_primitive,
    make_profile,
    make_tenant,
    store_everything,
)
from tests.support.ids import new_primitive_id
from tests.support.servers import TestDatabase, execute

OLDER_RULE = {
    "check": "http",
    "phases": ["call", "result"],
    "action": "log",
    "position": 3,
    "scope": {"names": ["a*"], "sources": [], "tags": ["t"], "methods": [], "safety": ["safe"], "families": ["tool"]},
    "origins": ["live"],
    "patterns": [],
    "max_bytes": None,
    "hook": {"url": "https://judge.example/", "credential": "signing", "timeout_ms": 70, "is_fail_open": True},
    "enabled": False,
}
"""The rule of a guardrail as release 79130e09 stored it; it reads these members, or else their defaults."""
MAX_URI_LENGTH = "docs://" + "x" * 2041


@pytest.fixture
async def acme(store: Store) -> TenantId:
    """A tenant with nothing in it."""
    tenant = make_tenant()
    async with store.transaction(tenant.id) as db:
        await TENANTS.insert(tenant.id, db, tenant)
    return tenant.id


async def test_a_primitive_is_returned_unchanged(store: Store, acme: TenantId) -> None:
    """Ours: definition and handler byte for byte, levels, reasons and references (PRG-3)."""
    made = replace(
        make_primitive("say", refers=("tool:a", "credential:b")),
        safety=Safety.DANGEROUS,
        enabled=False,
    )
    async with store.transaction(acme) as db:
        await ROWS[Family.TOOL].insert(acme, db, made)
        assert await ROWS[Family.TOOL].get(acme, db, "say") == made
        assert await ROWS[Family.TOOL].get(acme, db, made.id) == made
        assert await ROWS[Family.PROMPT].get(acme, db, "say") is None
        assert await primitives.users(acme, db, "credential:b") == [(Family.TOOL, "say")]
        assert await primitives.users(acme, db, "credential:c") == []
        [bare] = await primitives.tool_levels(acme, db)
        assert bare == to_primitive(replace(made, definition=b"", handler=b""))


async def test_a_saved_primitive_is_its_next_version(store: Store, acme: TenantId) -> None:
    """Ours: every write is another version, and a name can change (ADM-1)."""
    made = make_primitive("say")
    async with store.transaction(acme) as db:
        await ROWS[Family.TOOL].insert(acme, db, made)
        await ROWS[Family.TOOL].save(acme, db, replace(made, name="tell"))
        found: Any = await ROWS[Family.TOOL].get(acme, db, made.id)
        assert found == replace(made, name="tell", version=2, updated_at=found.updated_at)
        assert await ROWS[Family.TOOL].remove(acme, db, made.id)
        assert not await ROWS[Family.TOOL].remove(acme, db, made.id)
        with pytest.raises(NotFound):
            await ROWS[Family.TOOL].save(acme, db, made)


async def test_a_name_is_there_once_in_a_family(store: Store, acme: TenantId) -> None:
    """Ours: the database itself keeps names apart, of the longest kind too (PRG-4)."""
    made = make_primitive(MAX_URI_LENGTH, family=Family.RESOURCE)
    async with store.transaction(acme) as db:
        await ROWS[Family.RESOURCE].insert(acme, db, made)
        await ROWS[Family.TEMPLATE].insert(acme, db, make_primitive(MAX_URI_LENGTH, family=Family.TEMPLATE))
        with pytest.raises(NameTaken):
            await ROWS[Family.RESOURCE].insert(acme, db, replace(made, id=new_primitive_id("res")))


async def test_lists_are_in_parts_by_name_in_every_locale(store: Store, acme: TenantId) -> None:
    """Ours: names are compared by their bytes, so every replica and cursor agrees (RES-3)."""
    async with store.transaction(acme) as db:
        for name in ("b", "A", "a", "Z", "ä"):
            await ROWS[Family.TOOL].insert(acme, db, make_primitive(name))
            await PROFILES.insert(acme, db, make_profile(name))
        first = await ROWS[Family.TOOL].page(acme, db, after=None, limit=3)
        second = await ROWS[Family.TOOL].page(acme, db, after=first[-1].name, limit=3)
        assert [one.name for one in (*first, *second)] == ["A", "Z", "a", "b", "ä"]
        assert list(await primitives.names(acme, db, Family.TOOL)) == ["A", "Z", "a", "b", "ä"]
        assert [one.name for one in await PROFILES.page(acme, db, after="Z", limit=9)] == ["a", "b", "ä"]
        assert (await primitives.count(acme, db), await PROFILES.count(acme, db)) == (5, 5)


async def test_a_profile_is_returned_unchanged(store: Store, acme: TenantId) -> None:
    """Ours: rules are stored whole (CAP-1)."""
    made = make_profile("small")
    async with store.transaction(acme) as db:
        await PROFILES.insert(acme, db, made)
        assert await PROFILES.get(acme, db, "small") == await PROFILES.get(acme, db, made.id) == made
        await PROFILES.save(acme, db, replace(made, exclude=(), description=""), at=NOW)
        assert await PROFILES.load(acme, db) == [replace(made, exclude=(), description="", version=2)]
        with pytest.raises(NameTaken):
            await PROFILES.insert(acme, db, replace(make_profile("small")))


async def test_only_keys_that_can_be_used_hold_a_profile(store: Store, acme: TenantId) -> None:
    """Ours: a revoked key is no reason to keep a profile."""
    bound = replace(make_key(acme), profile="small")
    async with store.transaction(acme) as db:
        await KEYS.insert(acme, db, bound)
        await KEYS.insert(acme, db, make_key(acme))
        assert await keys.bound_to(acme, db, "small") == [bound.id]
        await KEYS.save(acme, db, replace(bound, revoked_at=bound.created_at))
        assert await keys.bound_to(acme, db, "small") == []


async def test_a_credential_opens_only_as_it_was_sealed(store: Store, database: TestDatabase, acme: TenantId) -> None:
    """Ours: a secret whose destination was changed in the database itself does not open (TEN-4)."""
    made, secret = make_credential("token"), SealedCredential(value="s3cr3t", username="u")
    async with store.transaction(acme) as db:
        await CREDENTIALS.insert_sealed(acme, db, SEALER, made, secret=secret)
        stored = await CREDENTIALS.get(acme, db, "token")
        assert stored is not None
        assert stored.status.secret_at is not None
        assert replace(stored, status=made.status) == made
        opened = await open_named(acme, db, SEALER, "token")
    assert opened is not None
    plain = Credential(value="s3cr3t", username="u")
    assert (opened.credential, opened.place, opened.field) == (plain, "header", "X-Key")
    assert opened.origins == made.origins
    for change in (
        "origins = array['https://evil.example']",
        "field = 'X-Other'",
        "place = 'query'",
        "name = 'other'",
        "version = 2",
        """delegation = '{"type": "assertion", "audience": "https://evil.example"}'""",
        """reference = '{"store": "vault", "path": "x", "field": "y"}'""",
    ):
        column = change.split(" ")[0]
        await execute(database.superuser_url, f"create table kept as select {column} as it from credentials")
        await execute(database.superuser_url, f"update credentials set {change}")
        async with store.transaction(acme) as db:
            with pytest.raises(SecretUnreadable):
                await open_named(acme, db, SEALER, "other" if column == "name" else "token")
        await execute(
            database.superuser_url, f"update credentials set {column} = (select it from kept); drop table kept"
        )
    async with store.transaction(acme) as db:
        assert await open_named(acme, db, SEALER, "token") == opened


async def test_a_replaced_credential_has_the_new_secret_only(store: Store, acme: TenantId) -> None:
    """Ours: the old value is gone with the write (TEN-4)."""
    made = make_credential("token")
    async with store.transaction(acme) as db:
        await CREDENTIALS.insert_sealed(acme, db, SEALER, made, secret=SealedCredential(value="old"))
        moved = replace(made, version=2, origins=("https://b.example",))
        await CREDENTIALS.write_sealed(acme, db, SEALER, moved, secret=SealedCredential(value="new"))
        opened = await open_named(acme, db, SEALER, "token")
        assert opened is not None
        assert (opened.credential.value, opened.origins) == ("new", ("https://b.example",))
        assert await CREDENTIALS.remove(acme, db, made.id)
        assert await open_named(acme, db, SEALER, "token") is None


async def test_a_tenant_goes_with_all_of_its_own(store: Store, acme: TenantId) -> None:
    """Ours: removing a tenant removes its primitives, profiles and credentials, sealed values first or last (TEN-1)."""
    stored = await store_everything(store, "victim")
    async with store.transaction(stored.tenant.id) as db:
        assert await TENANTS.remove(stored.tenant.id, db, stored.tenant.id)
    async with store.transaction(stored.tenant.id) as db:
        assert await primitives.load(stored.tenant.id, db) == []
        assert await CREDENTIALS.page(stored.tenant.id, db, after=None, limit=9) == []


async def test_operations_are_found_by_all_their_names(store: Store) -> None:
    """Ours: by operationId, identity and tool name, with their tags, within the named source (PRG-3)."""
    stored = await store_everything(store, "acme")
    tenant, source = stored.tenant.id, stored.source
    tagged = replace(make_operation(source.id, "tagged"), operation_id="getIt", tags=("a", "b c"))
    async with store.transaction(tenant) as db:
        await operations.insert_all(tenant, db, [tagged])
        for key in ("getIt", "GET /tagged", "tagged"):
            [found] = await operations.find(tenant, db, [source.name], [key])
            assert (found.tool.name, found.operation_id, found.is_listed) == ("tagged", "getIt", True)
            assert found.tool.tags == ("a", "b c")
        assert await operations.find(tenant, db, ["other"], ["getIt"]) == []
        assert await operations.owner(tenant, db, "tagged") == source.name
        assert await operations.levels(tenant, db, ["tagged", "none"]) == {"tagged": Safety.SAFE}


async def test_a_policy_keeps_its_origins(store: Store, acme: TenantId) -> None:
    """Ours: none allowed and any allowed are different things."""
    for origins in (("https://a.example",), (), None):
        async with store.transaction(acme) as db:
            await POLICY.save(acme, db, Policy(http_origins=origins))
            assert (await POLICY.get(acme, db)).http_origins == origins


async def test_reading_sees_one_moment(store: Store, acme: TenantId) -> None:
    """Ours: a commit between two queries of a snapshot is in neither of them."""
    async with store.reading(acme) as reading:
        assert await primitives.count(acme, reading) == 0
        async with store.transaction(acme) as db:
            await ROWS[Family.TOOL].insert(acme, db, make_primitive("late"))
        assert await primitives.load(acme, reading) == []
    async with store.reading(acme) as reading:
        assert await primitives.count(acme, reading) == 1
    async with store.transaction(acme) as db:  # the level does not stay with the connection
        before = await primitives.count(acme, db)
        async with store.transaction(acme) as other:
            await ROWS[Family.TOOL].insert(acme, other, make_primitive("later"))
        assert await primitives.count(acme, db) == before + 1


async def test_releases_read_the_guardrails_of_each_other(store: Store, acme: TenantId) -> None:
    """Ours: replicas of two releases share the rows of guardrails (OPS-1)."""
    rows, made = GUARDRAILS.table, make_guardrail("acme")
    async with store.transaction(acme) as db:
        await GUARDRAILS.insert(acme, db, made)
        await db.execute(update(rows).values(rule=orjson.dumps(OLDER_RULE)))
        read = await GUARDRAILS.get(acme, db, made.id)
        assert read is not None
        assert read.hook is not None
        assert (read.hook.fail, read.position, read.scope.tags, read.enabled) == (HookFailure.OPEN, 3, ("t",), False)
        await GUARDRAILS.save(acme, db, read)
        stored = (await db.execute(select(rows))).mappings().one()
        assert {"patterns": [], "max_bytes": None, **orjson.loads(stored["rule"])} == OLDER_RULE
        assert (stored["position"], stored["credential"]) == (3, "signing")
        await GUARDRAILS.save(acme, db, replace(read, hook=None))
        stored = (await db.execute(select(rows))).mappings().one()
        assert (orjson.loads(stored["rule"]).get("hook"), stored["credential"]) == (None, None)
