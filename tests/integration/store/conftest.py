"""An open store on a fresh database."""

from collections.abc import AsyncGenerator

import pytest

from gateway.store.engine import Store


@pytest.fixture
async def store(database_url: str) -> AsyncGenerator[Store]:
    """The store as the gateway opens it."""
    async with Store(database_url) as opened:
        yield opened
