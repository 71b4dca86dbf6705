"""Differences of two outlines, which query tools show: the operations in full, the schemas, and the document itself.

Only new endpoints and new named schemas are classified as wider. Every other difference is classified as a text
change, also an addition to a known endpoint or schema, because agents read all of it.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping

import msgspec

from gateway.domain.json_access import as_list, as_object, point
from gateway.domain.json_text import decode_json
from gateway.domain.updates.source_changes import Difference, DifferenceKind, Impact
from gateway.openapi.query.outline import Outline, decode_outline
from gateway.openapi.review.excerpts import make_difference
from gateway.openapi.review.limits import MAX_OUTLINE_STEPS

_DERIVED = frozenset(("parameters", "schemas", "links"))
_PLAIN_VERSION = re.compile(r"[0-9A-Za-z.+_-]{1,64}")
_Parts = Mapping[str, object]


def compare_outlines(old: bytes, new: bytes) -> Iterator[Difference]:
    """Yield the differences between two stored outlines; an empty outline means that nothing is shown."""
    if old == new or not (old and new):
        return
    before, after = (decode_outline(one)[0] for one in (old, new))
    for name in ("openapi", "title", "summary", "description", "servers", "tags", "section"):
        pair = msgspec.to_builtins((getattr(before, name), getattr(after, name)))
        if pair[0] != pair[1]:
            yield _text(f"/{name}", *pair)
    if before.version != after.version:
        is_plain = _PLAIN_VERSION.fullmatch(after.version) is not None
        kinds = (DifferenceKind.DOCUMENTATION, Impact.WIDENING) if is_plain else (DifferenceKind.TEXT, Impact.TEXT)
        yield make_difference(*kinds, "/version", old=before.version, new=after.version)
    yield from _OutlineComparison().run(_parts(before), _parts(after))


def _parts(outline: Outline) -> _Parts:
    """The named parts of an outline, still encoded."""
    return {
        "endpoints": {one.identity: one for one in outline.endpoints},
        "schemas": {one.name: one for one in outline.schemas},
        "targets": outline.targets,
    }


class _OutlineComparison:
    """One comparison of the parts of two outlines."""

    def __init__(self) -> None:
        self._queue: deque[tuple[object, object, str]] = deque()

    def run(self, old: _Parts, new: _Parts) -> Iterator[Difference]:
        """Yield all differences."""
        for section, before in old.items():
            yield from self._compare(before, new[section], f"/{section}", is_section=True)
        for _ in range(MAX_OUTLINE_STEPS):
            if not self._queue:
                return
            yield from self._compare(*self._queue.popleft())
        yield _text("", None, f"more than {MAX_OUTLINE_STEPS} values; the rest was not compared")

    def _compare(self, old: object, new: object, pointer: str, *, is_section: bool = False) -> Iterator[Difference]:
        if old == new:
            return
        old, new = _opened(old), _opened(new)
        before, after = as_object(old), as_object(new)
        if before is None or after is None:
            yield from self._compare_lists(old, new, pointer)
            return
        for name in dict.fromkeys((*before, *after)):
            pointer_part = f"{pointer}{point(name)}"
            if name in before and name in after:
                self._queue.append((before[name], after[name], pointer_part))
            elif name in after and is_section:  # guard: rule-no-new-documentation
                kind = DifferenceKind.DOCUMENTATION
                yield make_difference(kind, Impact.WIDENING, pointer_part, old=None, new=_shown(after[name]))
            else:
                yield _text(pointer_part, before.get(name), after.get(name))

    def _compare_lists(self, old: object, new: object, pointer: str) -> Iterator[Difference]:
        """Compare two values that are not both objects."""
        before, after = as_list(old), as_list(new)
        if before is None or after is None:
            yield _text(pointer, old, new)
            return
        for index, (one, other) in enumerate(zip(before, after, strict=False)):
            self._queue.append((one, other, f"{pointer}/{index}"))
        for index, one in enumerate(after[len(before) :], len(before)):
            yield _text(f"{pointer}/{index}", None, one)
        for index, one in enumerate(before[len(after) :], len(after)):
            yield _text(f"{pointer}/{index}", one, None)


def _opened(value: object) -> object:
    """The value of encoded JSON, or the members of an outline's entry without those that are derived from others."""
    if isinstance(value, msgspec.Raw):
        return decode_json(value)
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__ if name not in _DERIVED}
    return value


def _text(pointer: str, old: object, new: object) -> Difference:
    return make_difference(DifferenceKind.TEXT, Impact.TEXT, pointer, old=_shown(old), new=_shown(new))


def _shown(value: object) -> object:
    """The value in a form that can be encoded."""
    return decode_json(msgspec.json.encode(value))
