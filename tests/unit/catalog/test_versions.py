"""Tags of objects and the versions a change is meant for."""

from dataclasses import replace

import pytest

from gateway.catalog.versions import check_version, tag_of
from gateway.domain.egress import Egress
from gateway.domain.policy import Policy
from gateway.errors import PreconditionFailed


def test_a_new_version_has_another_tag() -> None:
    """RFC 9110: a tag names one version of an object."""
    policy = Policy()
    assert tag_of(policy) == tag_of(Policy()) != tag_of(replace(policy, version=2))
    assert tag_of(Egress()) == tag_of(Egress()) != tag_of(Egress(version=2))


@pytest.mark.parametrize("expected", [None, frozenset({"*"}), frozenset({"policy.1"}), frozenset({"x", "policy.1"})])
def test_the_current_version_passes(expected: frozenset[str] | None) -> None:
    """RFC 9110: If-Match holds when one of its tags is current."""
    check_version(Policy(version=1), expected)


@pytest.mark.parametrize("expected", [frozenset[str](), frozenset({"policy.2"}), frozenset({"1"})])
def test_another_version_is_refused(expected: frozenset[str]) -> None:
    """RFC 9110: otherwise the precondition failed."""
    with pytest.raises(PreconditionFailed):
        check_version(Policy(version=1), expected)
