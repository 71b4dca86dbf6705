"""Hints in a document about its tools: `x-mcp` and the equivalent extensions of other vendors.

An invalid hint is ignored with a warning. No hint makes a tool safer than its HTTP method.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gateway.domain.json_access import Object, as_object
from gateway.domain.tenancy.policy import Safety
from gateway.openapi.document.plain_text import plain_text
from gateway.openapi.warnings import Warnings

KEYS = ("x-mcp", "x-speakeasy-mcp", "x-google-mcp-tool")
"""The extensions, in order of precedence at one level."""

_FLAGS: Mapping[str, bool] = {"enabled": True, "disabled": False, "hidden": False}
"""The members that include or exclude an operation; the value is True if `true` includes it."""
_ONLY_EXCLUDES = "hidden"
_LEVELS = (Safety.SAFE, Safety.MODERATE, Safety.DANGEROUS)


class DocumentHints(msgspec.Struct, frozen=True, kw_only=True):
    """The hints for one operation, None if absent. `refused_by` names the extension that excludes the operation."""

    refused_by: str | None = None
    name: str | None = None
    title: str | None = None
    description: str | None = None
    safety: Safety | None = None


NO_HINTS = DocumentHints()


class HintedSafety(msgspec.Struct, frozen=True, kw_only=True):
    """A level of the document (operation, path item, root) with its title for messages, its pointer and its node."""

    title: str
    where: str
    node: Object


def read_hints(levels: Sequence[HintedSafety], method_safety: Safety, warnings: Warnings) -> DocumentHints:
    """Return the hints for one operation, from its own node first, then from its path item and the document.

    The innermost level that includes or excludes the operation decides, and the innermost valid safety applies. Name,
    title and description are read only from the operation. If it has any of them, outer levels cannot exclude it.
    """
    found = [hint for level in levels for hint in _hints_at(level, warnings)]
    if not found:
        return NO_HINTS
    own = [hint for hint in found if hint.level is levels[0]]
    name, title, description = (_text(own, member, warnings) for member in ("name", "title", "description"))
    is_described = any(text is not None for text in (name, title, description))
    speaking = own if is_described else found
    nearest = next((hint for hint in speaking if hint.is_wanted is not None), None)
    return DocumentHints(
        refused_by=None if nearest is None or nearest.is_wanted else nearest.title,
        name=name,
        title=title,
        description=description,
        safety=_safety(found, method_safety, warnings),
    )


def is_stricter(one: Safety, other: Safety) -> bool:
    """True if the first level permits more harm than the second."""
    return _LEVELS.index(one) > _LEVELS.index(other)


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """One extension at one level."""

    level: HintedSafety
    key: str
    is_wanted: bool | None
    members: Object

    @property
    def title(self) -> str:
        return f"{self.key} of {self.level.title}"

    @property
    def where(self) -> str:
        return f"{self.level.where}/{self.key}"


def _hints_at(level: HintedSafety, warnings: Warnings) -> Iterator[_Found]:
    for key in KEYS:
        if key not in level.node:
            continue
        value = level.node[key]
        members = as_object(value)
        if isinstance(value, bool):
            yield _Found(level=level, key=key, is_wanted=value, members={})
        elif members is not None:
            wanted = _is_included(members, f"{level.where}/{key}", warnings)
            yield _Found(level=level, key=key, is_wanted=wanted, members=members)
        else:
            warnings.add(f"{level.where}/{key}", "must be true, false or an object; it is ignored")


def _is_included(members: Object, where: str, warnings: Warnings) -> bool | None:
    """True if the members include the operation, False if at least one excludes it, None if no member decides."""
    message: list[bool] = []
    for name, meaning in _FLAGS.items():
        if name not in members:
            continue
        value = members[name]
        if not isinstance(value, bool):
            warnings.add(where, f"`{name}` is neither true nor false; it is ignored")
        elif value or name != _ONLY_EXCLUDES:
            message.append(value is meaning)
    return all(message) if message else None


def _text(found: Sequence[_Found], name: str, warnings: Warnings) -> str | None:
    for hint in found:
        if name not in hint.members:
            continue
        value = hint.members[name]
        text = plain_text(value) if isinstance(value, str) else ""
        if text:
            return text
        warnings.add(hint.where, f"`{name}` is not text; it is ignored")
    return None


def _safety(found: Sequence[_Found], method_safety: Safety, warnings: Warnings) -> Safety | None:
    for hint in found:
        if "safety" not in hint.members:
            continue
        value = hint.members["safety"]
        level = next((level for level in _LEVELS if value == level.value), None)
        if level is None:
            warnings.add(hint.where, "`safety` must be safe, moderate or dangerous; it is ignored")
        elif is_stricter(method_safety, level):  # guard: document-safety
            what = f"`safety` is {level}, but a document cannot declare a lower level than that of the method, which is"
            warnings.add(hint.where, f"{what} {method_safety}")
        else:
            return level
    return None
