"""Canonical JSON of the golden files: keys are sorted, and a value is on one line if the line holds it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

Json = Mapping[str, Any]

_WIDTH = 160
"""Characters of a line; shorter lines split most schemas, longer ones hide what a diff changed."""


def write(value: Json) -> str:
    """Return the text of a golden file."""
    return "\n".join(_lines(value, "", "")) + "\n"


def _lines(value: object, indent: str, label: str) -> Iterator[str]:
    flat = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if (indent and len(indent) + len(label) + len(flat) <= _WIDTH) or not isinstance(value, dict | list) or not value:
        yield f"{indent}{label}{flat}"
        return
    if isinstance(value, dict):
        members = cast("Json", value)
        opening, closing = "{}"
        parts = [(members[name], f"{json.dumps(name, ensure_ascii=False)}: ") for name in sorted(members)]
    else:
        opening, closing = "[]"
        parts = [(item, "") for item in cast("Sequence[object]", value)]
    yield f"{indent}{label}{opening}"
    for place, (part, name) in enumerate(parts, 1):
        *before, last = _lines(part, f"{indent} ", name)
        yield from before
        yield last if place == len(parts) else f"{last},"
    yield f"{indent}{closing}"
