"""Overrides of imported tools and the names that tools had, as they are stored."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.overrides import ALIAS_LIFETIME, Hints, ResultParts
from gateway.domain.tenancy.policy import Safety
from gateway.errors import NameTaken, NotFound
from gateway.store import operations, tool_aliases
from gateway.store.engine import Store
from gateway.store.kinds.overrides import OVERRIDES
from gateway.store.kinds.tenants import TENANTS
from gateway.store.sources import sources
from tests.integration.store.samples import make_operation, make_override, make_source, make_tenant
from tests.support.servers import TestDatabase, execute

EVERYTHING: Mapping[str, Any] = {
    "given_name": "find",
    "title": "Find\N{SNOWMAN}",
    "description": "two\nlines",
    "hidden": True,
    "enabled": False,
    "safety": Safety.DANGEROUS,
    "annotations": Hints(readOnlyHint=False),
    "pinned": {"z": 2**70, "a": {"y": [1.5, None, "\0"], "b": True}},
    "result": ResultParts(pointer="/items", keep=("/*/id",)),
}


@dataclass(frozen=True, slots=True)
class Imported:
    """A tenant with a source of three operations."""

    tenant: TenantId
    source: SourceId


@pytest.fixture
async def imported(store: Store) -> Imported:
    """A tenant with a source."""
    tenant = make_tenant()
    source = make_source(tenant.id)
    async with store.transaction(tenant.id) as db:
        await TENANTS.insert(tenant.id, db, tenant)
        await sources.insert(source, db)
        made = [make_operation(source.id, name) for name in ("a", "b", "c")]
        await operations.insert_all(tenant.id, db, made)
    return Imported(tenant.id, source.id)


async def test_an_override_is_returned_unchanged(store: Store, imported: Imported) -> None:
    """Ours: every member, in its order, with the version that counts up, and the tool beside it (OAS-6)."""
    tenant, source = imported.tenant, imported.source
    made = make_override(source, "a", **EVERYTHING)
    async with store.transaction(tenant) as db:
        await OVERRIDES.insert(tenant, db, made)
        shown = replace(made, name="a", tool="a")  # the tool is not renamed yet
        assert await OVERRIDES.get(tenant, db, made.id) == await OVERRIDES.get(tenant, db, "a") == shown
        [loaded] = await operations.find(tenant, db, ["petstore"], ["GET /a"])
        assert await operations.find_identity(tenant, db, "petstore", "GET /a") == loaded
        assert loaded.override == shown
        assert list((shown.pinned or {}).keys()) == ["z", "a"]
        others: dict[str, Any] = {**dict.fromkeys(EVERYTHING), "title": "other"}
        await OVERRIDES.save(tenant, db, replace(made, **others))
        saved = (await OVERRIDES.of_source(tenant, db, source))["GET /a"]
        assert (saved.version, saved.title, saved.hidden, saved.result) == (2, "other", None, None)
        with pytest.raises(NotFound):
            await OVERRIDES.save(tenant, db, make_override(source, "b"))
        assert await OVERRIDES.remove(tenant, db, made.id)
        assert not await OVERRIDES.remove(tenant, db, made.id)
        assert await OVERRIDES.count(tenant, db) == 0


async def test_a_row_of_an_earlier_release_is_read(store: Store, imported: Imported) -> None:
    """Ours: earlier releases write every member, as null where nothing is overridden, and read ours (OAS-6)."""
    tenant, source = imported.tenant, imported.source
    made = make_override(source, "a", title="T", result=ResultParts(keep=("/id",)))
    earlier = (
        b'{"name":null,"title":"T","description":null,"hidden":null,"enabled":null,"safety":"moderate",'
        b'"annotations":{"readOnlyHint":false},"pinned":null,"result":{"keep":["/id"]}}'
    )
    async with store.transaction(tenant) as db:
        await OVERRIDES.insert(tenant, db, made)
        written = (await db.execute(text("select body from overrides"))).scalar_one()
        assert bytes(written) == b'{"title":"T","result":{"keep":["/id"]}}'
        await db.execute(text("update overrides set body = :body"), {"body": earlier})
        read = await OVERRIDES.get(tenant, db, made.id)
    expected = replace(made, tool="a", safety=Safety.MODERATE, annotations=Hints(readOnlyHint=False))
    assert read == expected


async def test_overrides_are_listed_in_order_and_go_with_their_source(store: Store, imported: Imported) -> None:
    """Ours: page after page by identity, and nothing is left of a source that is removed (OAS-6)."""
    tenant, source = imported.tenant, imported.source
    async with store.transaction(tenant) as db:
        for name in ("c", "a", "gone", "b"):
            await OVERRIDES.insert(tenant, db, make_override(source, name))
        await tool_aliases.add(tenant, db, source, {"GET /a": "old"})
        first = await OVERRIDES.page_of_source(tenant, db, source, after=None, limit=3)
        rest = await OVERRIDES.page_of_source(tenant, db, source, after=first[-1].operation, limit=3)
        assert [one.operation for one in (*first, *rest)] == ["GET /a", "GET /b", "GET /c", "GET /gone"]
        assert (await OVERRIDES.given_names(tenant, db))["gone_renamed"] == "petstore"
        assert await operations.owner(tenant, db, "gone_renamed") == "petstore"
        assert await sources.remove(tenant, db, source)
        assert (await OVERRIDES.count(tenant, db), await tool_aliases.active(tenant, db)) == (0, [])


async def test_no_two_overrides_have_a_name_or_an_operation(store: Store, imported: Imported) -> None:
    """Ours: the database itself refuses the second (OAS-6)."""
    tenant, source = imported.tenant, imported.source
    async with store.transaction(tenant) as db:
        await OVERRIDES.insert(tenant, db, make_override(source, "a", given_name="one"))
    for clash in (make_override(source, "b", given_name="one"), make_override(source, "a")):
        with pytest.raises(NameTaken):
            async with store.transaction(tenant) as db:
                await OVERRIDES.insert(tenant, db, clash)
    async with store.transaction(tenant) as db:  # without a name they do not meet
        await OVERRIDES.insert(tenant, db, make_override(source, "b", title="t"))
        await OVERRIDES.insert(tenant, db, make_override(source, "c", title="t"))


async def test_a_renamed_operation_keeps_its_documents_name(store: Store, imported: Imported) -> None:
    """Ours: an import goes on from the document's names, everything else from the names in force (OAS-6)."""
    tenant, source = imported.tenant, imported.source
    async with store.transaction(tenant) as db:
        [loaded] = await operations.find(tenant, db, ["petstore"], ["GET /a"])
        await OVERRIDES.insert(tenant, db, make_override(source, "a", given_name="find", safety=Safety.DANGEROUS))
        await operations.rename(tenant, db, loaded.tool.operation, "find")
        assert await operations.known_names(tenant, db, source) == {"GET /a": "a", "GET /b": "b", "GET /c": "c"}
        assert await operations.names_of(tenant, db, source) == {"GET /a": "find", "GET /b": "b", "GET /c": "c"}
        assert await operations.levels(tenant, db, ["find", "b", "a"]) == {"find": Safety.DANGEROUS, "b": Safety.SAFE}
        found = await operations.find_named(tenant, db, "find")
        assert found is not None
        assert operations.document_name(found.tool.definition) == "a"
    with pytest.raises(NameTaken):
        async with store.transaction(tenant) as db:
            await operations.rename(tenant, db, loaded.tool.operation, "b")


async def test_an_alias_lives_for_its_time(store: Store, database: TestDatabase, imported: Imported) -> None:
    """Ours: an old name leads to the tool as it is called now, for thirty days and no longer (OAS-6)."""
    tenant, source = imported.tenant, imported.source
    async with store.transaction(tenant) as db:
        await tool_aliases.add(tenant, db, source, {"GET /a": "old_a", "GET /gone": "old_gone"})
        living = await tool_aliases.active(tenant, db)
        assert await tool_aliases.resolve(tenant, db, ["old_a", "old_gone", "a"]) == {"old_a": "a"}
        now = (await db.execute(text("select now()"))).scalar_one()
    assert [(one.name, one.identity) for one in living] == [("old_a", "GET /a"), ("old_gone", "GET /gone")]
    assert {one.expires_at - now for one in living} == {ALIAS_LIFETIME}
    assert timedelta(days=30) == ALIAS_LIFETIME

    await execute(database.superuser_url, "update aliases set expires_at = now() where name = 'old_a'")
    async with store.transaction(tenant) as db:
        assert [one.name for one in await tool_aliases.active(tenant, db)] == ["old_gone"]
        assert await tool_aliases.resolve(tenant, db, ["old_a"]) == {}
        await tool_aliases.add(tenant, db, source, {"GET /b": "old_b"})
        left = (await db.execute(text("select name from aliases order by name"))).scalars()
        assert list(left) == ["old_b", "old_gone"]  # what is over does not stay stored


async def test_an_operation_has_few_old_names_and_the_newest_owner_counts(store: Store, imported: Imported) -> None:
    """Ours: renaming again and again does not pile names up (OAS-6)."""
    tenant, source = imported.tenant, imported.source
    for number in range(8):
        async with store.transaction(tenant) as db:  # now() is that of the transaction
            await tool_aliases.add(tenant, db, source, {"GET /a": f"name_{number}"})
    async with store.transaction(tenant) as db:
        await tool_aliases.add(tenant, db, source, {"GET /b": "name_7"})
        living = await tool_aliases.active(tenant, db)
        assert {one.name: one.identity for one in living} == {
            **{f"name_{number}": "GET /a" for number in (3, 4, 5, 6)},
            "name_7": "GET /b",
        }
