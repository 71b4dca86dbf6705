"""Cache of valid envelopes of 2026-07-28, for clients that repeat one."""

from typing import Any, cast

import pytest

from gateway.calls.pipeline import CallPipeline
from gateway.protocol.fast_path import FastPath
from tests.support.gateway import META


@pytest.fixture
def plain() -> FastPath:
    """The holder of the cache; no call is made here."""
    return FastPath(cast(CallPipeline, None))


def _envelope(size: int) -> dict[str, Any]:
    return {**META, "io.modelcontextprotocol/clientInfo": {"name": "x" * size, "version": "1"}}


def test_a_large_envelope_is_not_remembered(plain: FastPath) -> None:
    """ISO-3: large envelopes would fill a cache that all tenants share; they are validated each time."""
    for size in range(100_000, 100_020):
        assert plain.is_valid_envelope(_envelope(size))

    assert plain.remembered == 0


def test_a_usual_envelope_is_remembered(plain: FastPath) -> None:
    """Ours: one judgement for all requests of a client."""
    for _ in range(3):
        assert plain.is_valid_envelope(_envelope(20))

    assert plain.remembered == 1
