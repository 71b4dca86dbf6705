"""The arithmetic and the tables of the benchmark."""

import pytest

from benchmarks.figures import Table, percentile, ratio, spread


@pytest.mark.parametrize(("share", "value"), [(0, 1), (1, 1), (50, 50), (99, 99), (99.5, 100), (100, 100)])
def test_a_percentile_is_a_value_that_was_seen(share: float, value: float) -> None:
    """Ours: the nearest rank, in whatever order the values came."""
    assert percentile(list(range(100, 0, -1)), share) == value


def test_the_percentile_of_one_value_is_that_value() -> None:
    """Ours: a single observation is the whole result."""
    assert percentile([3.5], 99) == 3.5


def test_nothing_has_no_percentile() -> None:
    """Ours: a measurement without calls is a mistake, not a zero."""
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_a_spread_is_the_median_and_the_range() -> None:
    """Ours: one figure to compare and how far it moved."""
    assert spread([3000, 1000, 2000]) == "2,000 (1,000–3,000)"
    assert spread([0.126, 0.1, 0.2], 2) == "0.13 (0.10–0.20)"


def test_a_spread_without_a_range_is_one_figure() -> None:
    """Ours: one round has no range to show; no round has nothing."""
    assert spread([7.2]) == "7"
    assert spread([7.1, 7.2]) == "7"
    assert spread([]) == "–"


def test_a_ratio_compares_medians() -> None:
    """Ours: one round that went wrong does not move the ratio."""
    assert ratio([200, 220, 900], [100, 110, 120]) == "2.00"
    assert ratio([], [1]) == "–"
    assert ratio([1], [0]) == "–"


def test_a_table_is_markdown_for_every_cell() -> None:
    """Ours: the document that the command writes renders, also when an error message lands in a cell."""
    table = Table(title="Calls", columns=("target", "µs"), rows=(("a|b\nc", "1"), ("d", "2")), notes=("so it is",))
    assert table.render() == "\n".join(
        [
            "## Calls",
            "",
            "| target | µs |",
            "|---|---:|",
            "| a&#124;b c | 1 |",
            "| d | 2 |",
            "",
            "- so it is",
        ]
    )
