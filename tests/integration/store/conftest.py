"""An open store on a database without tenants."""

import pytest

from gateway.store.engine import Store
from tests.support.open_database import OpenDatabase, module_database, open_database, own_database
from tests.support.servers import TestDatabase

__all__ = ["module_database", "open_database", "own_database"]


@pytest.fixture
def database(open_database: OpenDatabase) -> TestDatabase:
    """The one beneath the store."""
    return open_database.database


@pytest.fixture
def store(open_database: OpenDatabase) -> Store:
    """The store as the gateway opens it."""
    return open_database.store
