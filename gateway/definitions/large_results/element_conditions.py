"""Conditions on the elements of a stored result, tested within a bounded number of steps and bytes per page."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from gateway.definitions.large_results.json_parts import is_container, look_up, split, text_of
from gateway.definitions.large_results.limits import MAX_CONDITION_STEPS, MAX_TESTED_BYTES
from gateway.domain.json_access import tokens_of
from gateway.domain.json_text import decode_json

Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementCondition:
    """A condition on one part of an element: `equals` lists accepted values, `contains` is a case-folded substring."""

    pointer: str = ""
    equals: tuple[Scalar, ...] = ()
    contains: str | None = None


@dataclass(slots=True)
class _PointerNode:
    """The conditions of one part, and those of the parts below it by the tokens of their pointers."""

    here: list[ElementCondition] = field(default_factory=list[ElementCondition])
    below: dict[str, "_PointerNode"] = field(default_factory=dict[str, "_PointerNode"])


class ConditionTests:
    """Tests the elements of one page, and counts the work."""

    def __init__(self, conditions: Sequence[ElementCondition]) -> None:
        self._root = _PointerNode()
        self._steps = self._bytes = 0
        for condition in conditions:
            node = self._root
            for token in tokens_of(condition.pointer):
                node = node.below.setdefault(token, _PointerNode())
            node.here.append(condition)

    @property
    def is_used_up(self) -> bool:
        """True if the page ends before its next element."""
        return self._steps >= MAX_CONDITION_STEPS or self._bytes >= MAX_TESTED_BYTES

    def matches(self, element: bytes) -> bool:
        """Test an element; each of its containers is parsed once for all conditions, and is not retained."""
        waiting = [(element, self._root)]
        while waiting:
            part, node = waiting.pop()
            self._steps += len(node.here) + len(node.below)
            self._bytes += len(part) * (len(node.here) + bool(node.below))
            if not all(_is_met(part, condition) for condition in node.here):
                return False
            parts = split(part) if node.below else ()
            for token, below in node.below.items():
                found = look_up(parts, token)
                if found is None:
                    return False
                waiting.append((found, below))
        return True


def _is_met(part: bytes, condition: ElementCondition) -> bool:
    if is_container(part):
        return False
    if condition.contains is not None:
        return part.startswith(b'"') and condition.contains in text_of(part).casefold()
    return any(_equals(part, value) for value in condition.equals)


def _equals(raw: bytes, value: Scalar) -> bool:
    try:
        found = text_of(raw) if raw.startswith(b'"') else decode_json(raw)
    except msgspec.MsgspecError:  # a number beyond the range of floats
        return False
    return isinstance(found, bool) is isinstance(value, bool) and found == value
