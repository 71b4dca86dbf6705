"""Markers and mutations, on small modules."""

import pytest

from tests.mutations import ALWAYS, NEVER, SKIP, Mutation, becomes, marks, place_of, swap, value, without

GUARDED = """\
def send(tenant, row, rows):
    if row is None or row.tenant != tenant:  # guard: own-row
        raise LookupError
    elif row.is_old:  # reads "é"  # guard: fresh-row
        raise LookupError
    # guard: two-names, second-name
    # The reason.
    check(tenant)
    kept = [
        tenant,
        row.text,  # guard: one-line
    ]
    try:
        shown = row if row.is_public else None  # guard: public-row
    except OSError:  # guard: no-crash
        return None
    except ValueError:
        return shown
    return [
        one
        for one in rows
        if one.is_public  # guard: public-rows
    ]
"""


def _changed(name: str, mutation: Mutation) -> list[tuple[str, str]]:
    """The lines that a mutation changes, before and after."""
    before, after = GUARDED.split("\n"), mutation(place_of(name, GUARDED)).split("\n")
    assert len(before) == len(after)
    return [(old.strip(), new.strip()) for old, new in zip(before, after, strict=True) if old != new]


@pytest.mark.parametrize(
    ("name", "mutation", "line"),
    [
        ("own-row", NEVER, "if False:  # guard: own-row"),
        ("own-row", ALWAYS, "if True:  # guard: own-row"),
        ("own-row", without(1), "if ((row.tenant != tenant)):  # guard: own-row"),
        ("own-row", without(2), "if ((row is None)):  # guard: own-row"),
        ("own-row", swap("!=", "=="), "if row is None or row.tenant == tenant:  # guard: own-row"),
        ("fresh-row", NEVER, 'elif False:  # reads "é"  # guard: fresh-row'),
        ("second-name", SKIP, "pass"),
        ("two-names", becomes("check(None)"), "check(None)"),
        ("two-names", value("None"), "(None)"),
        ("one-line", swap("row.text", "''"), "'',  # guard: one-line"),
        ("public-row", ALWAYS, "shown = row if True else None  # guard: public-row"),
        ("public-row", value("row"), "shown = (row)  # guard: public-row"),
        ("no-crash", swap("OSError", "EOFError"), "except EOFError:  # guard: no-crash"),
        ("public-rows", ALWAYS, "if True  # guard: public-rows"),
    ],
)
def test_a_mutation_changes_the_marked_statement(name: str, mutation: Mutation, line: str) -> None:
    """Ours: a mutation changes one line of the marked statement, and nothing else."""
    assert [after for _, after in _changed(name, mutation)] == [line]


def test_a_line_and_an_except_clause_can_be_left_out() -> None:
    """Ours: an element of several lines' statement, and a handler of exceptions, are guards too."""
    assert SKIP(place_of("one-line", GUARDED)) == GUARDED.replace("        row.text,  # guard: one-line\n", "")
    assert "OSError" not in SKIP(place_of("no-crash", GUARDED))


@pytest.mark.parametrize(
    ("name", "mutation", "reason"),
    [
        ("unknown", SKIP, "marked 0 times"),
        ("two-names", NEVER, "0 conditions"),
        ("own-row", without(3), "no operands"),
        ("own-row", value("None"), "has no value"),
        ("own-row", swap("row", "one"), "occurs 2 times"),
        ("own-row", swap("LookupError", "OSError"), "occurs 0 times"),
        ("own-row", swap("guard", "rule"), "occurs 0 times"),
        ("two-names", without(1), "no operands"),
        ("one-line", value("None"), "not its statement"),
        ("one-line", becomes("pass"), "not its statement"),
    ],
)
def test_a_mutation_that_does_not_apply_is_an_error(name: str, mutation: Mutation, reason: str) -> None:
    """Ours: no mutation silently leaves the code as it is; bodies and comments are not part of what is marked."""
    with pytest.raises(ValueError, match=reason):
        mutation(place_of(name, GUARDED))


def test_markers_are_found_with_the_line_that_they_mark() -> None:
    """Ours: a marker of its own line marks the next line of code; texts that look like a marker are none."""
    module = '# guard: a, b\n\nX = "# guard: no"\nY = 1  # guard: c\n# guard: d is prose\n'

    assert list(marks(module)) == [("a", 3), ("b", 3), ("c", 4)]


def test_a_name_marks_one_place() -> None:
    """Ours: a name that is copied with its code is an error."""
    with pytest.raises(ValueError, match="marked 2 times"):
        place_of("a", "X = 1  # guard: a\nY = 1  # guard: a\n")
