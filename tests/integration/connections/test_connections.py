"""Connections over a real catalog: what they share, what they never share, and that nothing is left of them."""

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass

import anyio
import pytest

from gateway.catalog.snapshots.snapshots import Snapshots
from gateway.definitions.json_schema.validator_cache import Validators
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import KeyId, OperationId, SourceId, TenantId, mint, new_operation_id, new_source_id
from gateway.domain.primitives import Family
from gateway.domain.sources import Exposure, Source, StoredOperation
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.tenants import Tenant
from gateway.errors import NotFound
from gateway.handlers.binding import Binder
from gateway.registry.connections.connections import Connections
from gateway.registry.cursors import Cursors
from gateway.registry.views import ViewCache
from gateway.store import operations, tenants
from gateway.store.engine import Store
from gateway.store.kinds.tenants import TENANTS
from gateway.store.sources import sources
from gateway.upstream.client import UpstreamClient
from tests.support.clock import NOW


class NoSecrets:
    """A reader that has none."""

    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        return {}

    async def named(self, tenant: TenantId, name: str) -> NamedCredential | None:
        return None


@dataclass(frozen=True, slots=True)
class House:
    """The connections of one replica, and its store."""

    connections: Connections
    store: Store

    async def tenant(self, slug: str, tools: int) -> Principal:
        """A tenant with this many tools, and who asks for it."""
        tenant = Tenant(id=TenantId(mint("ten")), slug=slug, name=slug, version=0, created_at=NOW)
        async with self.store.transaction(tenant.id) as db:
            await TENANTS.insert(tenant.id, db, tenant)
            source = _source(tenant.id)
            await sources.insert(source, db)
            await operations.insert_all(tenant.id, db, [_operation(source.id, number) for number in range(tools)])
        return Principal(
            tenant=tenant.id, slug=slug, key=KeyId("key_1"), subject="alice", scopes=frozenset({Scope.MCP})
        )


def _source(tenant: TenantId) -> Source:
    return Source(
        tenant=tenant,
        id=new_source_id(),
        name="api",
        title="API",
        base_url=None,
        prefix=None,
        expose=Exposure.TOOLS,
        url=None,
        schemes=(),
        active_version=1,
        version=1,
        created_at=NOW,
        updated_at=NOW,
    )


def _operation(source: SourceId, number: int) -> StoredOperation:
    definition: dict[str, object] = {
        "name": f"tool_{number:04}",
        "description": "x",
        "inputSchema": {"type": "object", "properties": {}},
    }
    return StoredOperation(
        id=OperationId(new_operation_id()),
        source=source,
        identity=f"GET /{number}",
        operation_id=None,
        tool=f"tool_{number:04}",
        definition=json.dumps(definition).encode(),
        plan=b'{"method":"GET","origin":"http://127.0.0.1:1","path":"/"}',
        safety=Safety.SAFE,
    )


@pytest.fixture
async def house(database_url: str) -> AsyncGenerator[House]:
    """One replica's connections over an empty catalog."""
    async with Store(database_url) as store, UpstreamClient() as upstream:
        views = ViewCache(Binder(upstream, NoSecrets(), Validators()))
        async with Connections(Snapshots(store), views, Cursors(b"k" * 32)) as connections:
            yield House(connections, store)


async def test_two_connections_of_a_tenant_share_its_snapshot(house: House) -> None:
    """Ours: a snapshot that was loaded and compiled once serves every connection of the tenant (CON-2)."""
    acme = await house.tenant("acme", 3)

    async with house.connections.open(acme) as first, house.connections.open(acme) as second:
        assert first.view is second.view
        assert await first.tool("tool_0001") is await second.tool("tool_0001")
        assert first.page(Family.TOOL, None) is second.page(Family.TOOL, None)


async def test_connections_of_two_tenants_share_nothing(house: House) -> None:
    """Ours: no snapshot, tool or handler belongs to another tenant (CON-2, TEN-5)."""
    acme, globex = await house.tenant("acme", 2), await house.tenant("globex", 2)

    async with house.connections.open(acme) as mine, house.connections.open(globex) as theirs:
        bound, other = await mine.tool("tool_0001"), await theirs.tool("tool_0001")

    assert bound is not None
    assert other is not None
    assert mine.view is not theirs.view
    assert bound.handler is not other.handler
    assert (bound.tenant, other.tenant) == (acme.tenant, globex.tenant)


@pytest.mark.parametrize("tools", [1, 1000])
async def test_building_a_registry_touches_no_tool(house: House, tools: int) -> None:
    """Ours: a tenant with 1,000 tools costs a connection what one with a single tool does (CON-2)."""
    acme = await house.tenant("acme", tools)
    async with house.connections.open(acme):
        pass

    async with house.connections.open(acme) as registry:
        compiled = registry.view.compiled_count

    assert compiled == 0


async def test_nothing_is_left_of_connections_however_they_end(house: House) -> None:
    """Ours: after any mix of ends, failures and cancellations the gauge is back at zero (CON-1)."""
    acme = await house.tenant("acme", 1)
    missing = Principal(
        tenant=TenantId(mint("ten")), slug="none", key=KeyId("key_2"), subject="bob", scopes=frozenset({Scope.MCP})
    )
    entered = anyio.Event()

    async def stay() -> None:
        async with house.connections.open(acme):
            entered.set()
            await anyio.sleep_forever()

    async def fail() -> None:
        async with house.connections.open(acme):
            raise ZeroDivisionError

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(stay)
            group.start_soon(stay)
            await entered.wait()
            with pytest.raises(ZeroDivisionError):
                await fail()
            with pytest.raises(NotFound):
                async with house.connections.open(missing):
                    pass
            assert house.connections.open_count == 2
            group.cancel_scope.cancel()

    assert house.connections.open_count == 0


async def test_a_registry_is_kept_to_the_end_of_its_request(house: House) -> None:
    """Ours: a change swaps the registry for the next request and breaks none that is under way (CON-1)."""
    acme = await house.tenant("acme", 1)
    async with house.connections.open(acme) as before:
        async with house.store.transaction(acme.tenant) as db:
            revision = await tenants.advance(acme.tenant, db)
            await sources.remove(acme.tenant, db, before.view.snapshot.tools[0].source)
        house.connections.refresh(acme.tenant, revision)
        still = await before.tool("tool_0000")

    assert still is not None
