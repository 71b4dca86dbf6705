"""The endpoint that the tests of a module share; each test has keys and sources of its own names."""

from collections.abc import AsyncGenerator

import pytest

from tests.support.providers import ProviderStand, running_providers


@pytest.fixture
async def stand() -> AsyncGenerator[ProviderStand]:
    """An endpoint without connections."""
    async with running_providers() as running:
        yield running
