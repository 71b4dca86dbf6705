"""Differences as text for people."""

import sys
from typing import Any

import pytest

from gateway.cli.manifests.differences import is_different, render, summary
from gateway.cli.output.printing import echo
from tests.support.screens import screen

_RESPONSE: dict[str, Any] = {
    "objects": [
        {
            "kind": "profile",
            "name": "a",
            "action": "update",
            "drift": True,
            "changes": [
                {"pointer": "/description", "before": "x\x1b[31m", "after": None},
                {"pointer": "/value", "is_secret": True},
                {"pointer": "/include", "before": None, "after": None, "is_cut": True},
                {"pointer": "", "before": None, "after": None, "is_cut": True},
            ],
        },
        {"kind": "policy", "name": "", "action": "none", "drift": False, "changes": []},
        {
            "kind": "profile",
            "name": "b",
            "action": "create",
            "changes": [{"pointer": f"/include/{number}", "before": None, "after": number} for number in range(150)],
        },
        {"kind": "profile", "name": "c", "action": "merge", "changes": []},
    ]
}


def test_differences_are_lines() -> None:
    """Ours: an object and each changed value has a line without control characters; secrets have no value (CFG-1)."""
    lines = str(render("acme", _RESPONSE)).splitlines()

    assert lines[:7] == [
        "tenant acme: 1 to create, 1 to change, 1 to handle otherwise, 1 unchanged",
        "  ~ profile a (differs from what this set applied last)",
        '      /description: "x\\u001b[31m" → null',
        "      /value: (secret)",
        "      /include: (too large to show)",
        "      all: (too large to show)",
        "  + profile b",
    ]
    assert lines[-2:] == ["      and 50 other changes", "  ? profile c"]
    assert is_different(_RESPONSE)
    assert summary([{"objects": []}]) == "0 unchanged"


def test_an_object_has_the_color_of_its_action(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a terminal distinguishes creations from changes; an escape sequence of a value stays visible (CFG-1)."""
    for name in ("NO_COLOR", "TERM", "CLICOLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    with screen() as (stream, shown):
        monkeypatch.setattr(sys, "stdout", stream)
        echo(render("acme", _RESPONSE))
        monkeypatch.undo()

    assert "\x1b[32m  + profile b\x1b[0m\n" in shown[0]
    assert "\x1b[33m  ~ profile a" in shown[0]
    assert '/description: "x\\u001b[31m" → null' in shown[0]
