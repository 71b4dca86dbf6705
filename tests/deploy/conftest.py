"""Processes as they are deployed: whom they trust is the machine's business."""

import pytest


@pytest.fixture(autouse=True)
def trust() -> None:
    """Fetching packages needs those whom the machine trusts."""
