"""Overrides of imported tools in the catalog: they are stored for the tool against which they were checked."""

from dataclasses import replace

import pytest

from gateway.catalog.kinds.overrides import OVERRIDES, override_tool
from gateway.catalog.transaction import open_changes
from gateway.domain.overrides import Override
from gateway.domain.tools import Tool
from gateway.errors import ToolValidationError
from gateway.kinds.sources import OVERRIDE
from gateway.store import operations
from gateway.store.sources import sources
from tests.integration.catalog.conftest import BY, Changes
from tests.integration.store.samples import make_operation, make_source

DEFINITION = b'{"name":"get_pet","inputSchema":{"type":"object","properties":{"id":{"type":"integer"}}}}'
WANTED = {"source": "pets", "operation": "GET /get_pet", "title": "Find"}


@pytest.fixture
async def tool(changes: Changes) -> Tool:
    """The tool of a source."""
    tenant = changes.tenant.id
    source = replace(make_source(tenant), name="pets")
    async with changes.catalog.store.transaction(tenant) as db:
        await sources.insert(source, db)
        await operations.insert_all(tenant, db, [replace(make_operation(source.id, "get_pet"), definition=DEFINITION)])
        [loaded] = await operations.load(tenant, db)
    return loaded.tool


async def test_a_change_fits_the_document_under_which_it_is_stored(changes: Changes, tool: Tool) -> None:
    """Ours: a document that was imported since the validation is the one that counts (OAS-6)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    former = replace(tool, definition=b'{"name":"get_pet","inputSchema":{"properties":{"id":{"type":"string"}}}}')
    new = replace(OVERRIDE.make("get_pet", {**WANTED, "pinned": {"id": "x"}}), document=former)
    with pytest.raises(ToolValidationError, match="/pinned/id"):
        async with open_changes(tenant, catalog, by=BY) as opened:
            await OVERRIDES.write_new(opened, new)
    async with open_changes(tenant, catalog, by=BY) as opened:
        await OVERRIDES.write_new(opened, replace(new, pinned={"id": 7}))


async def test_a_change_of_a_tool_revises_its_stored_override(changes: Changes, tool: Tool) -> None:
    """Ours: a change goes on from what is stored, by the id of the tool too (OAS-6)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    made = await OVERRIDES.create(tenant, catalog, OVERRIDE.make("get_pet", WANTED), by=BY)
    seen: list[Override] = []

    def revise(one: Override) -> Override:
        seen.append(one)
        return replace(one, title="Mine")

    await override_tool(tenant, catalog, tool.operation, revise, by=BY)
    assert {one.version for one in seen} == {made.version}
    async with catalog.store.reading(tenant) as db:
        stored = await OVERRIDES.rows.get(tenant, db, made.id)
    assert stored is not None
    assert (stored.title, stored.version) == ("Mine", 2)
