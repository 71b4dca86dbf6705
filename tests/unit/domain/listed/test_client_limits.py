"""Limits of clients that only a report can show."""

import re

from gateway.domain.listed.client_limits import LIMITS, find_count_limits, find_limits


def test_tools_beyond_a_limit_are_named_with_the_remedy() -> None:
    """Ours: who refuses which tools, and what to do (CLN-1)."""
    tools = [
        {"name": "n" * 52, "description": "d" * 1024},
        {"name": "n" * 53, "description": "d" * 1025},
        {"name": "x", "description": "d" * 2049},
        {"name": "y"},
    ]
    found = {(one.clients, one.names): one.sentence for one in find_limits(tools)}

    assert set(found) == {
        (("Cursor",), ("n" * 53,)),
        (("Claude Code", "Codex"), ("n" * 52, "n" * 53)),
        (("OpenAI API",), ("n" * 53, "x")),
        (("Claude Code",), ("x",)),
    }
    assert all(re.search(r"\d", sentence) and "`gateway" in sentence for sentence in found.values())
    assert find_limits([{"name": "ok", "description": "Fine."}]) == []


def test_a_long_list_names_its_clients() -> None:
    """Ours: 80 tools, 128 and 512 are what clients take (CLN-1)."""
    clients = [[one.clients[0] for one in find_count_limits(number)] for number in (80, 81, 129, 513)]

    assert clients == [[], ["Cursor"], ["OpenAI API", "Cursor"], ["Gemini API", "OpenAI API", "Cursor"]]


def test_each_limit_has_a_source() -> None:
    """Ours: a thread, or the release with which it was tried (CLN-1)."""
    assert all(re.search(r"#\d+|\d+\.\d+|20\d\d", one.source) for one in LIMITS)
