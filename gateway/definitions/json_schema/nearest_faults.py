"""Faults of a value whose violations would be too many or too large to collect, found by a walk of our own.

The walk compares types, constants, missing and unknown names, level by level, and follows the nearest branch of each
choice. It may miss faults of other keywords, and never decides about a value. It ends after
`MAX_WALK_STEPS` comparisons.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from gateway.definitions.json_schema.explanations import branch_name, one_of
from gateway.definitions.json_schema.limits import (
    MAX_BRANCHES,
    MAX_SHOWN_NAME_LENGTH,
    MAX_UNKNOWN_NAMES,
    MAX_WALK_DEPTH,
    MAX_WALK_HOPS,
    MAX_WALK_ITEMS,
    MAX_WALK_STEPS,
)
from gateway.definitions.json_schema.tree import types_of
from gateway.domain.json_access import Object, as_list, as_object, point, tokens_of
from gateway.errors import Fault

_KINDS: Final[Mapping[type[Any], Sequence[str]]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    str: ("string",),
    dict: ("object",),
    list: ("array",),
    type(None): ("null",),
}


def nearest_faults(schema: Mapping[str, object], value: object, *, within: Sequence[str] = ()) -> Iterator[Fault]:
    """Yield the faults of the value of the argument `within`, or of all arguments."""
    part: object = schema
    for token in within:
        part = (as_object((as_object(part) or {}).get("properties")) or {}).get(token)
    yield from _Walk(schema).faults(part, value, tuple(within), 0)


class _LocalFaults(list[Fault]):
    """The faults at one schema; `is_other_kind` if its type or a constant excludes the value."""

    is_other_kind = False


class _Walk:
    """One walk over a schema and a value."""

    def __init__(self, schema: Mapping[str, object]) -> None:
        self._root = schema
        self._steps = MAX_WALK_STEPS

    def faults(self, schema: object, value: object, at: tuple[str | int, ...], depth: int) -> _LocalFaults:
        found = _LocalFaults()
        for node in self._same_value(schema):
            self._steps -= 1
            if self._steps < 0 or depth > MAX_WALK_DEPTH:
                return found
            self._compare(node, value, at, found)
            if found.is_other_kind:
                return found
            members, items = as_object(value), as_list(value)
            if members is not None:
                self._members(node, members, at, depth, found=found)
            elif items is not None and "items" in node:
                for index, item in enumerate(items[:MAX_WALK_ITEMS]):
                    found += self.faults(node["items"], item, (*at, index), depth + 1)
            for keyword in ("anyOf", "oneOf"):
                found += self._nearest(as_list(node.get(keyword)) or (), keyword, value, at, depth=depth)
        return found

    def _same_value(self, schema: object) -> Iterator[Object]:
        """The schema, the targets of its references, and the parts of its `allOf`."""
        waiting = [schema]
        for _ in range(MAX_WALK_HOPS):
            if not waiting:
                return
            node = as_object(waiting.pop())
            if node is None:
                continue
            yield node
            waiting += reversed(as_list(node.get("allOf")) or ())
            ref = node.get("$ref")
            if isinstance(ref, str) and ref.startswith("#"):
                waiting.append(self._target(ref))

    def _target(self, ref: str) -> object:
        found: object = self._root
        for token in tokens_of(ref[1:]):
            items = as_list(found)
            if items is not None:
                found = items[int(token)] if token.isdecimal() and int(token) < len(items) else None
            else:
                found = (as_object(found) or {}).get(token)
        return found

    def _compare(self, node: Object, value: object, at: tuple[str | int, ...], found: _LocalFaults) -> None:
        types = types_of(node)
        kinds = _KINDS.get(type(value), ())
        is_whole = isinstance(value, float) and value.is_integer() and "integer" in types
        if types and not is_whole and not set(kinds) & set(types):
            found.append(Fault(pointer=point(*at), reason=f"is not of type {one_of(types)}"))
            found.is_other_kind = True
            return
        allowed = as_list(node.get("enum")) or ((node["const"],) if "const" in node else ())
        is_plain = as_object(value) is None and as_list(value) is None
        if allowed and is_plain and not any(value == one and type(value) is type(one) for one in allowed):
            found.append(Fault(pointer=point(*at), reason=f"must be one of {one_of(allowed)}"))
            found.is_other_kind = True

    def _members(
        self, node: Object, members: Object, at: tuple[str | int, ...], depth: int, *, found: _LocalFaults
    ) -> None:
        for name in as_list(node.get("required")) or ():
            if isinstance(name, str) and name not in members:
                found.append(Fault(pointer=point(*at), reason=f"{_quote(name)} is a required property"))
        known = as_object(node.get("properties")) or {}
        if node.get("additionalProperties") is False and "patternProperties" not in node:
            unknown = [name for name in members if name not in known]
            if unknown:
                named = ", ".join(_quote(name) for name in unknown[:MAX_UNKNOWN_NAMES])
                found.append(Fault(pointer=point(*at), reason=f"has properties that are not allowed: {named}"))
        for name, part in known.items():
            if name in members:
                inner = self.faults(part, members[name], (*at, name), depth + 1)
                found.is_other_kind = found.is_other_kind or (
                    inner.is_other_kind and "const" in (as_object(part) or {})
                )
                found += inner

    def _nearest(
        self, branches: Sequence[object], keyword: str, value: object, at: tuple[str | int, ...], *, depth: int
    ) -> Sequence[Fault]:
        """The faults of the branch with the fewest; none if a branch has none, or for a value of several branches."""
        compared = [self.faults(branch, value, at, depth + 1) for branch in branches[:MAX_BRANCHES]]
        if not compared or not all(compared) or self._steps < 0:
            return ()
        number = min(range(len(compared)), key=lambda number: (compared[number].is_other_kind, len(compared[number])))
        name = branch_name(as_object(branches[number]) or {}, number, len(branches))
        head = f"is not valid under any of the schemas listed in the '{keyword}' keyword; the nearest is {name}"
        return [Fault(pointer=point(*at), reason=head), *compared[number]]


def _quote(name: str) -> str:
    shown = name if len(name) <= MAX_SHOWN_NAME_LENGTH else f"{name[:MAX_SHOWN_NAME_LENGTH]}…"
    return msgspec.json.encode(shown).decode()
