"""Items as commands print them."""

from typing import Any

from gateway.cli.item_commands import render_fields, render_items


def test_objects_of_an_item_are_shown_without_the_syntax_of_python() -> None:
    """Ours: an object shows its set members, and several are distinguished (CLI-1)."""
    rules = [{"group": "engineers", "scope": None, "profiles": ["a", "b"]}, {"scope": "tools"}]

    shown = str(render_fields({"rules": rules, "more": {}, "at": {"enabled": True}}))

    assert shown.splitlines() == ["rules  group=engineers profiles=a, b; scope=tools", "at     enabled=yes"]


def test_each_column_has_a_title_of_its_own() -> None:
    """Ours: a time is named by its event, unless the event is a column itself (CLI-1)."""
    item: dict[str, Any] = {"delivered": 5, "delivered_at": "today", "created_at": "yesterday"}

    heading = str(render_items([item], ("delivered", "delivered_at", "created_at"))).splitlines()[0]

    assert heading.lower().split() == ["delivered", "delivered", "at", "created"]
