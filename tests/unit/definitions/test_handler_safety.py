"""A handler's level is the highest of its parts, with the reasons."""

from typing import Any

import pytest

from gateway.definitions.handlers.parser import parse_handler
from gateway.definitions.handlers.safety import assess
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Safety


def http(method: str) -> dict[str, Any]:
    return {"method": method, "url": "https://h/x"}


@pytest.mark.parametrize(
    ("raw", "level", "reasons"),
    [
        ({"kind": "static", "content": []}, Safety.SAFE, ["always returns the same content"]),
        ({"kind": "template", "text": "a"}, Safety.SAFE, ["only fills a template"]),
        ({"kind": "http", **http("GET")}, Safety.SAFE, ["sends GET to https://h"]),
        ({"kind": "http", **http("QUERY")}, Safety.SAFE, ["sends QUERY to https://h"]),
        ({"kind": "http", **http("POST")}, Safety.MODERATE, ["sends POST to https://h"]),
        ({"kind": "http", **http("PATCH")}, Safety.MODERATE, ["sends PATCH to https://h"]),
        ({"kind": "http", **http("DELETE")}, Safety.DANGEROUS, ["sends DELETE to https://h"]),
        ({"kind": "steps", "steps": [{"log": "a"}, {"sleep": 1}]}, Safety.SAFE, []),
        (
            {
                "kind": "steps",
                "steps": [
                    {"http": http("GET")},
                    {
                        "if": {
                            "when": "a",
                            "then": [{"http": http("POST")}],
                            "else": [{"http": http("DELETE")}, {"http": http("DELETE")}],
                        }
                    },
                ],
            },
            Safety.DANGEROUS,
            ["sends GET to https://h", "sends POST to https://h", "sends DELETE to https://h"],
        ),
    ],
)
def test_the_level_is_the_highest_of_the_parts(raw: object, level: Safety, reasons: list[str]) -> None:
    """Ours: by method, branches that may be taken included (SAF-1)."""
    assert assess(parse_handler(raw, Family.TOOL)) == (level, tuple(reasons))


def test_a_called_tool_counts_with_its_own_level() -> None:
    """Ours: a list of steps is as dangerous as the tools that it calls (SAF-1)."""
    known = {"read": Safety.SAFE, "wipe": Safety.DANGEROUS}
    spec = parse_handler(
        {"kind": "steps", "steps": [{"call": {"tool": "read"}}, {"call": {"tool": "wipe"}}]}, Family.TOOL
    )
    unknown = parse_handler({"kind": "steps", "steps": [{"call": {"tool": "gone"}}]}, Family.TOOL)
    operation = parse_handler({"kind": "openapi", "source": "s", "operation": "wipe"}, Family.TOOL)

    assert assess(spec, known.get) == (
        Safety.DANGEROUS,
        ("calls read, which is safe", "calls wipe, which is dangerous"),
    )
    assert assess(unknown, known.get) == (Safety.MODERATE, ("calls gone, which is unknown",))
    assert assess(operation, known.get) == (Safety.DANGEROUS, ("runs the operation wipe, which is dangerous",))
    assert assess(spec) == (Safety.SAFE, ())
    assert assess(operation) == (Safety.SAFE, ())
