"""Field-by-field reader of an untrusted JSON object; unknown fields are faults, and each fault has a JSON Pointer."""

import re
from collections.abc import Collection, Sequence

from gateway.definitions.excerpts import shorten
from gateway.definitions.json_values import NotJson, copy_json
from gateway.definitions.limits import MAX_FAULT_POINTER_LENGTH, MAX_FAULTS, MAX_FIELD_LENGTH
from gateway.domain.json_access import Object, as_list, as_object, is_number, point, unescape_token
from gateway.errors import BadInput, DefinitionInvalid, Fault

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def copy_untrusted(raw: object, kind: type[DefinitionInvalid], what: str) -> object:
    """Return a deep copy of the value that contains only JSON types.

    Raises:
        DefinitionInvalid: the subclass `kind`; the value is not JSON, too deep or too large.
    """
    try:
        return copy_json(raw)
    except NotJson as wrong:
        faults = Faults()
        faults.add(wrong.pointer, wrong.reason)
        faults.raise_as(kind, what)
        return None


class Faults:
    """Collected validation faults, at most 20; later ones are dropped."""

    def __init__(self) -> None:
        self._found: list[Fault] = []

    def add(self, pointer: str, reason: str, *, line: int | None = None) -> None:
        """Add one fault, unless there are 20 already."""
        if len(self._found) < MAX_FAULTS:
            self._found.append(Fault(pointer=pointer[:MAX_FAULT_POINTER_LENGTH], reason=reason, line=line))

    def take(self, error: BadInput, pointer: str) -> None:
        """Add the faults of an error, or its message, below a pointer."""
        for fault in error.faults or (Fault(pointer="", reason=error.message),):
            self.add(pointer + fault.pointer, fault.reason, line=fault.line)

    def raise_as(self, kind: type[DefinitionInvalid], what: str) -> None:
        """Raise an error with all collected faults, if there are any; its message names the first field.

        Raises:
            DefinitionInvalid: the subclass `kind`; there are faults.
        """
        if not self._found:
            return
        first = self._found[0]
        field = shorten(_dotted(first.pointer), MAX_FIELD_LENGTH) or what
        more = f" (and {len(self._found) - 1} more)" if len(self._found) > 1 else ""
        raise kind(f"{field}: {first.reason}{more}", faults=self._found)


def _dotted(pointer: str) -> str:
    return ".".join(unescape_token(token) for token in pointer.split("/") if token)


class FieldReader:
    """Reader of one untrusted object; unknown fields are faults."""

    def __init__(self, raw: object, known: Collection[str], *, where: str, faults: Faults) -> None:
        self.where = where
        self.faults = faults
        self.known = frozenset(known)
        self.is_object = as_object(raw) is not None
        self._members: Object = as_object(raw) or {}
        if not self.is_object:
            faults.add(where, "must be an object")
        for name in self._members:
            if name not in known:
                faults.add(where + point(name), f"is not a known field; known fields: {', '.join(known)}")

    def has(self, name: str) -> bool:
        """True if the field was sent."""
        return name in self._members

    def raw(self, name: str) -> object:
        """The field as it was sent."""
        return self._members.get(name)

    def at(self, name: str) -> str:
        """The JSON Pointer of a field."""
        return self.where + point(name)

    def refuse(self, name: str, reason: str) -> None:
        """Add a fault for a field."""
        self.faults.add(self.at(name), reason)

    def require(self, *names: str) -> None:
        """Add a fault for each missing field."""
        for name in names:
            if self.is_object and not self.has(name):
                self.refuse(name, "is missing")

    def string(
        self, name: str, *, max_length: int, required: bool = False, is_blank_allowed: bool = False
    ) -> str | None:
        """Read a string; control and direction characters are refused, except tabs and line breaks."""
        if not self._is_there(name, required=required):
            return None
        value = self._members[name]
        if not isinstance(value, str):
            self.refuse(name, "must be a string")
        elif not is_blank_allowed and not value.strip():
            self.refuse(name, "must not be empty")
        elif len(value) > max_length:
            self.refuse(name, f"is longer than {max_length} characters")
        elif _UNPRINTABLE.search(value):
            self.refuse(name, "has control or direction characters")
        else:
            return value
        return None

    def choice(self, name: str, allowed: Sequence[str], *, required: bool = False) -> str | None:
        """Read one of the allowed words."""
        if not self._is_there(name, required=required):
            return None
        value = self._members[name]
        if isinstance(value, str) and value in allowed:
            return value
        self.refuse(name, f"must be one of {', '.join(allowed)}")
        return None

    def flag(self, name: str) -> bool | None:
        """Read a boolean."""
        if not self.has(name):
            return None
        value = self._members[name]
        if isinstance(value, bool):
            return value
        self.refuse(name, "must be true or false")
        return None

    def number(self, name: str, *, minimum: float, maximum: float, required: bool = False) -> float | None:
        """Read a number within bounds."""
        if not self._is_there(name, required=required):
            return None
        value = self._members[name]
        if isinstance(value, int | float) and is_number(value) and minimum <= value <= maximum:
            return value
        self.refuse(name, f"must be a number from {minimum:g} to {maximum:g}")
        return None

    def whole(self, name: str, *, minimum: int, maximum: int, required: bool = False) -> int | None:
        """Read a whole number within bounds."""
        if not self._is_there(name, required=required):
            return None
        value = self._members[name]
        if isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum:
            return value
        self.refuse(name, f"must be a whole number from {minimum} to {maximum}")
        return None

    def members(self, name: str, *, required: bool = False) -> Object | None:
        """Read an object as a copy; its members are not validated."""
        if not self._is_there(name, required=required):
            return None
        if as_object(self._members[name]) is None:
            self.refuse(name, "must be an object")
            return None
        return as_object(self.json(name))

    def json(self, name: str) -> object:
        """Read any JSON value as a copy."""
        try:
            return copy_json(self._members.get(name))
        except NotJson as wrong:
            self.faults.add(self.at(name) + wrong.pointer, wrong.reason)
            return None

    def items(self, name: str, *, max_items: int, min_items: int = 0, required: bool = False) -> Sequence[object]:
        """Read a list with a limited number of elements; the elements are returned unchanged."""
        if not self._is_there(name, required=required):
            return ()
        elements = as_list(self._members[name])
        if elements is None:
            self.refuse(name, "must be a list")
        elif not min_items <= len(elements) <= max_items:
            self.refuse(name, f"must have {min_items} to {max_items} elements")
        else:
            return elements
        return ()

    def strings(self, name: str, *, max_items: int, max_length: int, min_items: int = 0) -> tuple[str, ...]:
        """Read a list of strings; other elements are faults and are dropped."""
        found: list[str] = []
        for index, element in enumerate(self.items(name, max_items=max_items, min_items=min_items)):
            if isinstance(element, str) and len(element) <= max_length and not _UNPRINTABLE.search(element):
                found.append(element)
            else:
                self.faults.add(self.at(name) + point(index), f"must be a string of at most {max_length} characters")
        return tuple(found)

    def nested(self, name: str, known: Collection[str]) -> "FieldReader | None":
        """Return a reader of the object under a field; None if the field was not sent."""
        return (
            FieldReader(self._members[name], known, where=self.at(name), faults=self.faults) if self.has(name) else None
        )

    def _is_there(self, name: str, *, required: bool) -> bool:
        if self.has(name):
            return True
        if required:
            self.require(name)
        return False
