"""A database and its open store, which the tests of a module use one after another.

A store of each test's own costs PostgreSQL 40 ms of CPU: its connections read the catalog and plan every statement
again. When a test gives the database back, its rows are deleted beneath the open connections.
"""

from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass

import pytest

from gateway.store.engine import Store
from tests.support.servers import TestDatabase, TestServers


@dataclass(frozen=True, slots=True)
class OpenDatabase:
    """A migrated database without tenants, and the store of the gateway over it."""

    database: TestDatabase
    store: Store


@pytest.fixture(scope="module")
async def module_database(servers: TestServers) -> AsyncGenerator[OpenDatabase]:
    """The one that the tests of a module share."""
    with servers.database() as database:
        async with Store(database.app_url) as store:
            yield OpenDatabase(database, store)


@pytest.fixture
def open_database(servers: TestServers, module_database: OpenDatabase) -> Generator[OpenDatabase]:
    """The shared one, without rows of other tests."""
    yield module_database
    servers.empty(module_database.database)


@pytest.fixture
def own_database(servers: TestServers) -> Generator[TestDatabase]:
    """A database of one test, which may damage it."""
    with servers.database() as database:
        yield database
