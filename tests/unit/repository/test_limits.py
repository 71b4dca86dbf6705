"""The check of limits can fail: a new constant, one without a reason, a copy and an unused line are found."""

from pathlib import Path

import pytest

from tests.limits import EQUAL, LISTED, bounds, bounds_of, complaints, equal_complaints

ROOT = Path(__file__).parents[3]


def test_the_tree_has_no_new_limit_without_an_address() -> None:
    """Ours: a number that bounds a tenant, a request or a wait belongs into limits.py, a kind or the settings."""
    found = list(bounds(ROOT))
    assert list(complaints(found, LISTED.read_text().splitlines())) == []
    assert list(equal_complaints(found, EQUAL.read_text().splitlines())) == []


@pytest.mark.parametrize(
    ("module", "text", "reported"),
    [
        ("gateway/a/b.py", "_MAX_ROWS = 5\n", "_MAX_ROWS belongs into the limits.py"),
        ("gateway/a/b.py", "MIN_AGE = timedelta(minutes=1)\n", "MIN_AGE belongs into the limits.py"),
        ("gateway/a/b.py", "_WAIT_S: float = 2 * OTHER\n", "_WAIT_S belongs into the limits.py"),
        ("gateway/a/b.py", "_A_BYTES, _B = 1, 2\n", "_A_BYTES belongs into the limits.py"),
        ("gateway/a/b.py", '_WAIT_S = 2\n"""Seconds."""\n', "_WAIT_S belongs into the limits.py"),
        ("gateway/a/limits.py", "MAX_ROWS = 5\n", "MAX_ROWS has no reason"),
        ("gateway/a/limits.py", '\nMAX_ROWS = 5\n"""Rows of a page."""\n', ""),
        ("gateway/a/limits.py", "MAX_ROWS = 5  # rows of a page\n", ""),
        ("gateway/kinds/b.py", "MAX_ROWS = 5  # rows of a page\n", ""),
        ("gateway/settings.py", "MAX_ROWS = 5  # rows of a page\n", ""),
        ("gateway/a/b.py", "_MAX_NAMES = ('a', 'b')\nROWS = 5\n", ""),
    ],
)
def test_a_limit_has_an_address_and_a_reason(module: str, text: str, reported: str) -> None:
    """Ours: the name marks a number as a limit; texts and other names are none."""
    found = list(complaints(list(bounds_of(text, module)), []))
    assert [one for one in found if reported in one] if reported else found == []


def test_a_copy_beside_the_limits_is_found() -> None:
    """Ours: a number with one meaning is defined once in its package."""
    owner = bounds_of('MAX_ROWS = 5\n"""Rows of a page."""\n', "gateway/a/limits.py")
    copy = bounds_of("_MAX_ROWS = 5\n", "gateway/a/b.py")
    assert list(complaints([*owner, *copy], ["gateway/a/b.py _MAX_ROWS"])) == [
        "gateway/a/b.py: _MAX_ROWS is a copy of the constant of gateway/a/limits.py"
    ]


def test_the_list_only_shrinks() -> None:
    """Ours: a line whose constant has moved has to go."""
    assert [one for one in complaints([], ["gateway/a/b.py _MAX_ROWS"]) if "remove the line" in one]


def test_one_limit_in_two_packages_is_found() -> None:
    """Ours: a number with one meaning is imported from the lower layer; the list of others only shrinks."""
    one = list(bounds_of("MAX_ROWS = 2 * 512  # rows of a page\n", "gateway/a/limits.py"))
    other = list(bounds_of("MAX_ROWS = 1_024  # rows of a page\n", "gateway/b/limits.py"))
    [found] = equal_complaints([*one, *other], [])
    assert found.startswith("MAX_ROWS 1024 is in gateway/a/limits.py, gateway/b/limits.py")
    assert list(equal_complaints([*one, *other], ["MAX_ROWS 1024"])) == []
    [unused] = equal_complaints(one, ["MAX_ROWS 1024"])
    assert "no longer in two packages" in unused
