"""Tags of objects and the versions a change is meant for."""

import pytest

from gateway.catalog.etags import check_version, tag_of
from gateway.domain.tenancy.ceilings import DEFAULT_CEILINGS, BoundedPolicy, Ceilings, CeilingsInForce
from gateway.domain.tenancy.policy import Policy
from gateway.errors import PreconditionFailed


def test_a_new_version_has_another_tag() -> None:
    """RFC 9110: a tag names one version of an object."""
    assert tag_of(_policy(1)) == tag_of(_policy(1)) != tag_of(_policy(2))
    assert tag_of(_policy(1)) != tag_of(_policy(1, ceilings=2))


@pytest.mark.parametrize(
    "expected", [None, frozenset({"*"}), frozenset({"policy.1.1"}), frozenset({"x", "policy.1.1"})]
)
def test_the_current_version_passes(expected: set[str] | None) -> None:
    """RFC 9110: If-Match holds when one of its tags is current."""
    check_version(_policy(1), expected if expected is None else frozenset(expected))


@pytest.mark.parametrize("expected", [frozenset[str](), frozenset({"policy.2.1"}), frozenset({"1"})])
def test_another_version_is_refused(expected: frozenset[str]) -> None:
    """RFC 9110: otherwise the precondition failed."""
    with pytest.raises(PreconditionFailed):
        check_version(_policy(1), expected)


def _policy(version: int, *, ceilings: int = 1) -> BoundedPolicy:
    own = CeilingsInForce(own=Ceilings(version=ceilings), defaults=DEFAULT_CEILINGS)
    return BoundedPolicy(stored=Policy(version=version), ceilings=own)
