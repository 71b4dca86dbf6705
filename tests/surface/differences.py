"""Differences between two forms of a surface, and the report of them for a reviewer."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

ADDED, REMOVED, CHANGED = "added", "removed", "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference of a route, schema member, command, option, action or column."""

    group: str
    """The kind of the changed part, in the plural, such as `routes`."""
    name: str
    change: str
    detail: str = ""
    is_breaking: bool = False
    """True if a client of the former form can fail: it may send or expect what is no longer so."""

    def __str__(self) -> str:
        mark = "BREAKING " if self.is_breaking else ""
        return f"{mark}{self.change} {self.name}" + (f": {self.detail}" if self.detail else "")


def compare_names(group: str, before: Iterable[str], after: Iterable[str]) -> Iterator[Difference]:
    """Yield the parts that only one form has; a removed one is breaking."""
    old, new = set(before), set(after)
    for name in sorted(old - new):
        yield Difference(group=group, name=name, change=REMOVED, is_breaking=True)
    for name in sorted(new - old):
        yield Difference(group=group, name=name, change=ADDED)


def report(found: Iterable[Difference]) -> str:
    """Return the differences by group, breaking ones first, with their number; empty without any."""
    ordered = sorted(set(found), key=lambda one: (one.group, not one.is_breaking, one.change, one.name, one.detail))
    if not ordered:
        return ""
    groups = groupby(ordered, lambda one: one.group)
    parts = ["\n".join([f"{group}:", *(f"  {one}" for one in same)]) for group, same in groups]
    breaking = sum(one.is_breaking for one in ordered)
    return "\n".join([*parts, f"{len(ordered)} differences, {breaking} breaking for a client of the former form"])
