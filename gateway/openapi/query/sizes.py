"""Sizes of values as indented JSON text; the sizes of parts are computed without encoding each part again."""

from collections.abc import Sequence

import msgspec

from gateway.domain.json_access import as_list, as_object

INDENT = 2


def measure(value: object, level: int = 0) -> int:
    """Return the bytes of the text, with each line indented by `level` further levels."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=INDENT)
    return len(text) + text.count(b"\n") * INDENT * level


class Sizes:
    """Sizes of values, cached by `id`. So no measured value may be changed or freed while this object is used."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}

    def of(self, value: object, level: int = 0) -> int:
        """Return the size that `measure` computes."""
        size, lines = self._measure(value)
        return size + lines * INDENT * level

    def _measure(self, value: object) -> tuple[int, int]:
        """Bytes, and the number of line breaks among them."""
        items, members = as_list(value), as_object(value)
        if not items and not members:
            return len(msgspec.json.encode(value)), 0
        found = self._known.get(id(value))
        if found is None:
            found = self._add(items, ()) if items else self._add(tuple((members or {}).values()), tuple(members or ()))
            self._known[id(value)] = found
        return found

    def _add(self, items: Sequence[object], names: Sequence[str]) -> tuple[int, int]:
        """Size and line breaks of an array or object: members on their own lines, indented by one further level."""
        size = sum(len(msgspec.json.encode(name)) + 2 for name in names)  # the name, a colon and a space
        size, lines = size + 2, 1  # both brackets; the second one is on a separate line
        for item in items:
            inner, further = self._measure(item)
            size += inner + (further + 1) * INDENT + 1  # indentation and one line break
            lines += further + 1
        # a comma for every member but the last, and the line break before the closing bracket
        return size + len(items), lines
