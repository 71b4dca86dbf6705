"""Differences between an object and the one that replaces it, and the digest of what was applied."""

import hmac
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import orjson

from gateway.catalog.manifests.limits import MAX_CHANGES_SHOWN, MAX_SHOWN_BYTES, MAX_SHOWN_CHANGES, MAX_VALUE_BYTES
from gateway.domain.json_access import point, tokens_of
from gateway.domain.json_text import decode_json
from gateway.domain.members.markers import Shape, Veil
from gateway.domain.members.secret import Secret
from gateway.kinds.members import Member, secret_members, values_of

_DOMAIN = b"manifest\0"
_SECRETS = b"manifest secrets\0"
_NOT_SHOWN = "(not shown)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChange:
    """One changed value, by JSON Pointer; null for an absent one, and for a value that is not shown."""

    pointer: str
    before: object = None
    after: object = None
    is_secret: bool = False
    """True if the values differ in parts that no response shows."""
    is_cut: bool = False
    """True if the values are too large to show; the empty pointer is the whole object."""


_ALL_CUT = ValueChange(pointer="", is_cut=True)


class ChangeBudget:
    """The changed values that the result of one application may still show, by number and bytes."""

    def __init__(self) -> None:
        self._bytes, self._changes = MAX_SHOWN_BYTES, MAX_SHOWN_CHANGES

    def find_changes(self, before: Any | None, after: Any | None, members: Sequence[Member]) -> Sequence[ValueChange]:
        """The changed values of an object, as `find_changes` returns them; large ones are cut.

        When nothing is left, the only change of an object is one of the whole object.
        """
        if not self._is_left():
            sides = [None if one is None else values_of(one, members) for one in (before, after)]
            return () if sides[0] == sides[1] else (_ALL_CUT,)
        shown: list[ValueChange] = []
        for one in find_changes(before, after, members):
            if not self._is_left():
                return (_ALL_CUT,)
            shown.append(self._take(one))
        return shown

    def _is_left(self) -> bool:
        return self._bytes > 0 and self._changes > 0  # guard: manifest-result-bounded

    def _take(self, one: ValueChange) -> ValueChange:
        pointer = one.pointer
        size = len(pointer) + sum(len(msgspec.json.encode(side)) for side in (one.before, one.after))
        if size > MAX_VALUE_BYTES:  # guard: manifest-value-bounded
            if len(pointer) > MAX_VALUE_BYTES:  # names of members of a JSON Schema can be as long as values
                pointer = point(*tokens_of(pointer)[:1])
            one, size = ValueChange(pointer=pointer, is_secret=one.is_secret, is_cut=True), len(pointer)
        self._bytes -= size
        self._changes -= 1
        return one


def find_changes(before: Any | None, after: Any | None, members: Sequence[Member]) -> Sequence[ValueChange]:
    """The changed values of these members, as responses show them; one side may be absent."""
    old, new = _show(before, members), _show(after, members)
    found = [*_differences(old, new, ()), *_hidden(before, after, members)]
    if len(found) <= MAX_CHANGES_SHOWN:
        return found
    return [
        ValueChange(pointer=point(name), before=old.get(name), after=new.get(name))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]


def digest_of(one: Any, members: Sequence[Member], *, key: bytes) -> bytes:
    """A MAC of these members. Secrets, and members with their default, do not count: a new member changes no digest."""
    given = [each for each in members if not each.is_secret and getattr(one, each.name) != each.default]
    text = orjson.dumps(_describe(one, given), option=orjson.OPT_SORT_KEYS)
    return hmac.digest(key, _DOMAIN + text, "sha256")


def secrets_of(one: Any) -> Mapping[str, Secret]:
    """The secret parts that an object gives."""
    values = values_of(one, secret_members(type(one)))
    return {name: value for name, value in values.items() if value is not None}


def digest_of_secrets(given: Mapping[str, Secret], of: str, *, key: bytes) -> bytes:
    """A MAC of secret parts of the object with this id; equal secrets of two objects have different ones."""
    text = orjson.dumps([of, {name: one.reveal() for name, one in given.items()}], option=orjson.OPT_SORT_KEYS)
    return hmac.digest(key, _SECRETS + text, "sha256")


def _show(one: Any | None, members: Sequence[Member]) -> Mapping[str, Any]:
    """The values of members without their secret parts."""
    veils = {each.name: veil for each in members if (veil := each.mark(Veil)) is not None}
    shown = {} if one is None else {name: veil.show(getattr(one, name)) for name, veil in veils.items()}
    plain = _describe(one, [each for each in members if each.name not in veils])
    return {**plain, **{name: _plain(value) for name, value in shown.items()}}  # guard: manifest-veiled


def _hidden(before: Any | None, after: Any | None, members: Sequence[Member]) -> Iterator[ValueChange]:
    """The members that differ only in what responses do not show."""
    for each in members:
        veil = each.mark(Veil)
        if veil is None or before is None or after is None:
            continue
        sides = getattr(before, each.name), getattr(after, each.name)
        if sides[0] != sides[1] and veil.show(sides[0]) == veil.show(sides[1]):
            yield ValueChange(pointer=point(each.name), is_secret=True)


def _describe(one: Any | None, members: Sequence[Member]) -> Mapping[str, Any]:
    if one is None:
        return {}
    # An id that fills a member is another one in each installation.
    own = {each.name for each in members if Shape.FILLED in each.marks and getattr(one, each.name) == one.id}
    return {each.name: None if each.name in own else _plain(getattr(one, each.name)) for each in members}


def _plain(value: object) -> object:
    """The value in the form of JSON; bytes are a JSON text, and a secret is not shown."""
    if isinstance(value, Secret):
        return _NOT_SHOWN
    return decode_json(value) if isinstance(value, bytes) else msgspec.to_builtins(value)


def _differences(old: object, new: object, path: tuple[str, ...]) -> Iterator[ValueChange]:
    if old == new:
        return
    before, after = _parts(old), _parts(new)
    if before is None or after is None or type(old) is not type(new):
        yield ValueChange(pointer=point(*path), before=old, after=new)
        return
    for name in {**before, **after}:
        yield from _differences(before.get(name), after.get(name), (*path, name))


def _parts(value: object) -> Mapping[str, object] | None:
    """The members of an object or the elements of a list; None for another value."""
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    if isinstance(value, list | tuple):
        return {str(place): each for place, each in enumerate(cast("Sequence[object]", value))}
    return None
