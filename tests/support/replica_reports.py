"""A replica that reports attachments of live sources to the catalog of a running gateway.

The sources are of the kind `command`, which the gateway does not allow: so it neither attaches them nor records that
they are gone.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import pytest

from gateway.catalog.live.attachments import load, record_attached
from gateway.catalog.transaction import Author, CatalogContext, CatalogOptions
from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.live_sources import DiscoveredPrimitive, LiveKind
from gateway.domain.tenancy.principals import Operator
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.upstream.client import UpstreamClient
from tests.support.gateway import SECRET_KEY, RunningGateway
from tests.support.live_offers import offer_of
from tests.support.live_sources import declare_live, live_draft
from tests.support.servers import TestDatabase

_BY = Author(caller=Operator(), correlation_id="test")


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica beside the gateway, which has the tenant `acme`."""

    gateway: RunningGateway
    catalog: CatalogContext

    async def declare(self, name: str, **facts: Any) -> None:
        """Declare a live source of this name."""
        tenant = TenantId((await self.gateway.admin.get("/tenants/acme")).json()["id"])
        draft: dict[str, Any] = {"kind": LiveKind.COMMAND, "settings": {"argv": ["editor"]}, **facts}
        await declare_live(tenant, self.catalog, live_draft(name, **draft), by=_BY)

    async def attach(self, name: str, *primitives: DiscoveredPrimitive, notices: tuple[str, ...] = ()) -> None:
        """Report that the live source of this name is attached and offers these."""
        admin = self.gateway.admin
        tenant = TenantId((await admin.get("/tenants/acme")).json()["id"])
        source = LiveSourceId((await admin.get(f"/tenants/acme/live-sources/{name}")).json()["id"])
        found = await load(tenant, self.catalog, source)
        assert found is not None
        offer = offer_of(*primitives, title="editor 1.0", notices=notices)
        assert await record_attached(tenant, self.catalog, found, attachment="a", replica="r", discovery=offer)


@pytest.fixture
async def replica(gateway: RunningGateway, database: TestDatabase) -> AsyncGenerator[Replica]:
    """The gateway with the tenant `acme`, and a replica beside it."""
    await gateway.create_tenant("acme")
    sealer = EnvelopeCipher([SECRET_KEY])
    async with Store(database.app_url) as store, UpstreamClient(egress_allow=()) as upstream:
        catalog = CatalogContext(
            store=store,
            sealer=sealer,
            upstream=upstream,
            publish=_publish,
            chain_key=sealer.derive("audit"),
            options=CatalogOptions(live_commands=True),
        )
        yield Replica(gateway, catalog)


async def _publish(_: object) -> None:
    """Publish nothing: the tests read the admin API, which reads the database."""
