"""Registry of one agent's definitions, limited in number and size. Refused definitions cause notices.

`docs/providers.md` describes the messages.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

import msgspec

from gateway.domain.live_sources import DiscoveredPrimitive
from gateway.domain.primitives import Family
from gateway.upstream.live.agent.limits import MAX_DEFINITIONS_BYTES, MAX_NAME_LENGTH, MAX_PRIMITIVES

_MEMBERS: Final[Mapping[str, tuple[Family, str]]] = {
    "tools": (Family.TOOL, "name"),
    "resources": (Family.RESOURCE, "uri"),
    "resourceTemplates": (Family.TEMPLATE, "uriTemplate"),
    "prompts": (Family.PROMPT, "name"),
}
"""The list members of a message, each mapped to its family and to the definition member that contains the name."""

_Key = tuple[Family, str]
Check = Callable[[Sequence[DiscoveredPrimitive]], Awaitable[Sequence[str | None]]]
"""Validates definitions by the catalog's rules; returns a fault or None for each. May be slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One definition of a message, and its fault if it is refused."""

    primitive: DiscoveredPrimitive
    fault: str | None


async def read_candidates(params: Mapping[str, object], check: Check) -> Sequence[Candidate]:
    """Read the definitions of a message, and validate each one separately."""
    read: list[Candidate] = []
    seen: set[_Key] = set()
    for family, member, raw in _listed(params):
        name, fault = _name_of(raw, member)
        if len(read) >= MAX_PRIMITIVES:
            fault = f"more than {MAX_PRIMITIVES} definitions in one message"
        elif (family, name) in seen:
            fault = fault or "defined twice in one message"
        seen.add((family, name))
        definition = cast("dict[str, object]", raw) if isinstance(raw, dict) else {}
        read.append(
            Candidate(primitive=DiscoveredPrimitive(family=family, name=name, definition=definition), fault=fault)
        )
        if len(read) > 2 * MAX_PRIMITIVES:
            break
    checked = iter(await check([one.primitive for one in read if one.fault is None]))
    return [one if one.fault else replace(one, fault=next(checked)) for one in read]


class Offer:
    """The definitions of one source.

    An invalid definition is refused with a notice, and the existing definition is kept.
    """

    def __init__(self) -> None:
        self._offered: dict[_Key, tuple[DiscoveredPrimitive, int]] = {}
        self._notices: dict[_Key, str] = {}
        self._bytes = 0

    def __len__(self) -> int:
        """Number of offered primitives."""
        return len(self._offered)

    @property
    def primitives(self) -> tuple[DiscoveredPrimitive, ...]:
        """The offered primitives, in the order of their registration."""
        return tuple(primitive for primitive, _ in self._offered.values())

    @property
    def notices(self) -> tuple[str, ...]:
        """The faults of refused definitions."""
        return tuple(f"{family} {name!a}: {reason}" for (family, name), reason in self._notices.items())

    def has(self, family: Family, name: str) -> bool:
        """True if the agent offers this primitive now."""
        return (family, name) in self._offered

    def has_family(self, family: Family) -> bool:
        """True if the agent offers any primitive of the family."""
        return any(offered is family for offered, _ in self._offered)

    def clear(self) -> None:
        """Remove all definitions and notices."""
        self._offered.clear()
        self._notices.clear()
        self._bytes = 0

    def add(self, candidates: Sequence[Candidate]) -> list[dict[str, str]]:
        """Add definitions, which replace those with the same family and name; return the notices."""
        notices: list[dict[str, str]] = []
        for one in candidates:
            family, name = key = one.primitive.family, one.primitive.name
            reason = one.fault or self._put(key, one.primitive)
            if reason is not None:
                notices.append({"family": family, "name": name, "reason": reason})
                if len(self._notices) < MAX_PRIMITIVES:
                    self._notices[key] = reason
        return notices

    def remove(self, params: Mapping[str, object]) -> list[dict[str, str]]:
        """Remove the primitives of these names; return a notice for each unknown one."""
        notices: list[dict[str, str]] = []
        for family, _, name in _listed(params):
            key = family, name if isinstance(name, str) else ""
            self._notices.pop(key, None)
            if not self._drop(key) and len(notices) < MAX_PRIMITIVES:
                notices.append({"family": family, "name": key[1][:MAX_NAME_LENGTH], "reason": "not registered"})
        return notices

    def _put(self, key: _Key, primitive: DiscoveredPrimitive) -> str | None:
        """Store one definition; return the reason if it is refused."""
        size, replaced = len(msgspec.json.encode(primitive.definition)), self._offered.get(key)
        before = 0 if replaced is None else replaced[1]
        if replaced is None and len(self._offered) >= MAX_PRIMITIVES:  # guard: agent-primitives
            return f"more than {MAX_PRIMITIVES} primitives of one source"
        if self._bytes - before + size > MAX_DEFINITIONS_BYTES:  # guard: agent-definitions-size
            return f"the definitions of this source exceed {MAX_DEFINITIONS_BYTES} bytes"
        self._notices.pop(key, None)
        self._offered[key] = primitive, size
        self._bytes += size - before
        return None

    def _drop(self, key: _Key) -> bool:
        dropped = self._offered.pop(key, None)
        if dropped is None:
            return False
        self._bytes -= dropped[1]
        return True


def _listed(params: Mapping[str, object]) -> Iterator[tuple[Family, str, object]]:
    """Iterate over the lists of a message; members of other names and types are ignored."""
    for listed, (family, member) in _MEMBERS.items():
        items = params.get(listed)
        if isinstance(items, list):
            for item in cast("list[object]", items):
                yield family, member, item


def _name_of(raw: object, member: str) -> tuple[str, str | None]:
    """Return the name of a definition, and a fault if the name is missing or invalid."""
    if not isinstance(raw, dict):
        return "", "a definition must be an object"
    name = cast("dict[str, object]", raw).get(member)
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_LENGTH:
        return "", f"{member} must be a string of at most {MAX_NAME_LENGTH} characters"
    return name, None
