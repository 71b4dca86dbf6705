"""Aligned text of tables."""

from gateway.cli.output.tables import clean, count, render_pairs, render_table, shorten


def test_columns_fit_their_widest_cell_and_numbers_align_right() -> None:
    """Ours: a table reads well without colours or lines."""
    table = render_table(("name", "bytes"), [("a", "1"), ("longer", "1,234")], numbers=(1,))

    assert str(table) == "NAME    BYTES\na           1\nlonger  1,234"


def test_an_empty_table_names_its_items() -> None:
    """Ours: an empty list differs from no answer."""
    assert str(render_table(("name", "bytes"), [])) == "NAME  BYTES"


def test_wide_and_combining_signs_are_counted_as_the_terminal_shows_them() -> None:
    """Ours: a table stays aligned whatever language its names are in."""
    assert str(render_table(("n", "x"), [("図", "1"), ("abc", "2")])).splitlines()[1:] == ["図   1", "abc  2"]


def test_control_characters_never_reach_the_terminal() -> None:
    """Ours: a document's text cannot control the terminal of its reader."""
    assert "\x1b" not in str(render_table(("name",), [("\x1b[2Jx\n",)]))
    assert clean("a\nb\tc\x07") == "a b c\\x07"


def test_times_have_whole_seconds() -> None:
    """Ours: a table for people shows no microseconds; the JSON has them (CLI-1)."""
    rows = [("2026-11-28T15:32:44.123456+00:00 to 2026-11-28T15:32:44.1Z", "1.5")]

    assert (
        str(render_table(("at", "n"), rows)).splitlines()[1] == "2026-11-28T15:32:44+00:00 to 2026-11-28T15:32:44Z  1.5"
    )
    assert str(render_pairs([("at", "2026-11-28T15:32:44.000001Z")])) == "at  2026-11-28T15:32:44Z"


def test_empty_values_are_left_out_of_pairs() -> None:
    """Ours: a description shows what is known."""
    assert str(render_pairs([("id", "1"), ("nothing", ""), ("longer", "2")])) == "id      1\nlonger  2"


def test_shortened_text_fits_and_marks_the_cut() -> None:
    """Ours: a long description takes one line."""
    assert shorten("one  two\nthree", 20) == "one two three"
    assert shorten("one two three", 8) == "one two…"
    assert shorten("図書館図書館", 7) == "図書館…"
    assert shorten("", 5) == ""
    assert shorten("e\u0301e\u0301e\u0301", 2) == "e\u0301…"


def test_a_count_of_one_has_a_singular_noun() -> None:
    """Ours: sentences with numbers are read by people."""
    assert [count(number, "tool") for number in (0, 1, 2, 1_223)] == ["0 tools", "1 tool", "2 tools", "1,223 tools"]
    assert [count(number, "entry", "entries") for number in (1, 3)] == ["1 entry", "3 entries"]
