"""A catalog over a real database; events are kept in a list, documents are fetched through the real door."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import pytest

from gateway.catalog import tenants
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.events import Event
from gateway.domain.tenancy.principals import Operator
from gateway.domain.tenancy.tenants import Tenant
from gateway.store.encryption import EnvelopeCipher
from gateway.upstream.client import UpstreamClient
from tests.support.open_database import OpenDatabase, module_database, open_database
from tests.support.servers import TestDatabase
from tests.support.upstream import RecordingUpstream, recording_upstream

__all__ = ["module_database", "open_database"]

BY = Author(caller=Operator(), correlation_id="test")


@dataclass(frozen=True, slots=True)
class Changes:
    """A catalog, one tenant, and the events that its changes published."""

    catalog: CatalogContext
    tenant: Tenant
    upstream: RecordingUpstream
    events: list[Event] = field(default_factory=list[Event])


@pytest.fixture
def database(open_database: OpenDatabase) -> TestDatabase:
    """The one beneath the catalog."""
    return open_database.database


@pytest.fixture
async def changes(open_database: OpenDatabase) -> AsyncGenerator[Changes]:
    """A catalog with the tenant `acme`."""
    events: list[Event] = []

    async def publish(event: Event) -> None:
        events.append(event)

    sealer = EnvelopeCipher(["secret-key-of-the-tests-0123456789abc"])
    async with (
        recording_upstream() as recorder,
        UpstreamClient(egress_allow=[recorder.authority]) as upstream,
    ):
        catalog = CatalogContext(
            store=open_database.store,
            sealer=sealer,
            upstream=upstream,
            publish=publish,
            chain_key=sealer.derive("audit"),
        )
        tenant = await tenants.create_tenant(catalog, "acme", "Acme", by=BY)
        events.clear()  # the creation is an event of the installation
        yield Changes(catalog, tenant, recorder, events)
