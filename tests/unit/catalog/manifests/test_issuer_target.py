"""Issuers of manifests between their preparation and the transaction."""

from dataclasses import replace

import pytest

from gateway.catalog.manifests.issuer_target import IssuerState, ReadyIssuer
from gateway.errors import Conflict
from gateway.kinds.members import members_of, values_of
from tests.support.issuer import issuer_of

_FOUND = issuer_of("corp")
STORED = IssuerState(**values_of(_FOUND, members_of(type(_FOUND))))


def _wanted(current: IssuerState | None) -> IssuerState:
    return replace(current or STORED, max_lifetime_s=600)


def test_an_issuer_that_moved_is_not_written() -> None:
    """Ours: an issuer that was changed, created or removed since its metadata was fetched is refused (CFG-3)."""
    assert ReadyIssuer(compose=_wanted, seen=STORED)(STORED).max_lifetime_s == 600
    for seen, current in ((STORED, replace(STORED, version=2)), (None, STORED), (STORED, None)):
        with pytest.raises(Conflict, match="at the same time"):
            ReadyIssuer(compose=_wanted, seen=seen)(current)
