"""Tags of objects and the versions a change is meant for."""

import pytest

from gateway.catalog.etags import check_version, tag_of
from gateway.domain.identifiers import ProfileId
from gateway.domain.tenancy.profiles import Profile
from gateway.errors import PreconditionFailed


def test_a_new_version_has_another_tag() -> None:
    """RFC 9110: a tag names one version of an object."""
    assert tag_of(_profile(1)) == tag_of(_profile(1)) != tag_of(_profile(2))


@pytest.mark.parametrize("expected", [None, frozenset({"*"}), frozenset({"prf_1.1"}), frozenset({"x", "prf_1.1"})])
def test_the_current_version_passes(expected: set[str] | None) -> None:
    """RFC 9110: If-Match holds when one of its tags is current."""
    check_version(_profile(1), expected if expected is None else frozenset(expected))


@pytest.mark.parametrize("expected", [frozenset[str](), frozenset({"prf_1.2"}), frozenset({"1"})])
def test_another_version_is_refused(expected: frozenset[str]) -> None:
    """RFC 9110: otherwise the precondition failed."""
    with pytest.raises(PreconditionFailed):
        check_version(_profile(1), expected)


def _profile(version: int) -> Profile:
    return Profile(id=ProfileId("prf_1"), name="p", version=version)
