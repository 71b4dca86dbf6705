"""Differences as text for people."""

import os
import sys
from typing import Any

import pytest

from gateway.cli.manifests.differences import is_different, render, summary

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
    lines = render("acme", _RESPONSE).splitlines()

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


@pytest.mark.parametrize(
    ("variables", "has_colors"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colors_are_for_terminals(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], has_colors: bool) -> None:
    """Ours: no-color.org, and no escape sequences in files and logs."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert "\x1b" not in render("acme", _RESPONSE)
    ours, theirs = os.openpty()
    with open(theirs, "w") as screen:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stdout", screen)
        shown = render("acme", _RESPONSE)
    os.close(ours)
    assert ("\ue0f0" in shown) == has_colors
