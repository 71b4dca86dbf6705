"""Listed names of tools."""

import re

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.listed.names import PLAIN_NAME, ListedNames

_EVERY_CLIENT = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_STORED = st.text("ab_.-/1é", min_size=1, max_size=5) | st.text("a.b/", min_size=60, max_size=70)
_SETS = st.sets(_STORED, max_size=12)


@given(_SETS)
def test_each_listed_name_is_taken_by_every_client_and_calls_one_tool(stored: set[str]) -> None:
    """Ours: names of the table of client limits, unique, and called by any of their forms (CLN-1)."""
    names = ListedNames(stored)
    listed = {name: names.listed(name) for name in stored}

    assert all(_EVERY_CLIENT.fullmatch(name) for name in listed.values())
    assert len(set(listed.values())) == len(stored)
    for name, shown in listed.items():
        assert (names.stored(shown) or shown) == name
        assert (names.stored(name) or name) == name


@given(_SETS, _SETS)
def test_a_new_tool_takes_no_name_from_a_stored_one(stored: set[str], others: set[str]) -> None:
    """Ours: a called name is never another tool because of a neighbour, but for a tool of exactly that name."""
    alone, together = ListedNames(stored), ListedNames(stored | others)
    for name in stored:
        called = alone.listed(name)
        found = together.stored(called) or called
        assert found == name or called in others or found not in stored | others
        assert PLAIN_NAME.fullmatch(name) is None or together.listed(name) == name


def test_an_exact_name_wins_and_the_other_gets_a_digest() -> None:
    """Ours: `a.b` is listed as `a_b`; beside a tool `a_b` it has a digest, and both forms call it (CLN-1)."""
    alone, beside = ListedNames(["a.b"]), ListedNames(["a.b", "a_b"])
    marked = beside.listed("a.b")

    assert (alone.listed("a.b"), beside.listed("a_b")) == ("a_b", "a_b")
    assert re.fullmatch(r"a_b_[0-9a-f]{8}", marked)
    assert (alone.stored("a_b"), alone.stored(marked), beside.stored(marked)) == ("a.b", "a.b", "a.b")
    assert beside.stored("a_b") is None
    assert {ListedNames(["a.b", "a/b"]).listed(name) for name in ("a.b", "a/b")}.isdisjoint({"a_b"})


def test_a_first_character_that_a_client_refuses_gets_one_before_it() -> None:
    """Ours: Gemini refuses a name that begins with a digit or a hyphen (CLN-1)."""
    names = ListedNames(["2fa", "-x", "_y", "z"])

    assert [names.listed(name) for name in ("2fa", "-x", "_y", "z")] == ["_2fa", "_-x", "_y", "z"]
