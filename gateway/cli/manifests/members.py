"""Kinds and members of manifests, from the declarations: names, keys, secrets, and checks of what a document holds."""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from gateway.cli.input.json_fields import JsonObject, is_object, to_list
from gateway.domain.json_access import point
from gateway.domain.members.markers import Veil
from gateway.errors import Fault
from gateway.kinds.manifests import Declared, key_member, kind_in_manifests, name_in_manifests
from gateway.kinds.members import STATUS, Member, element_of, entries_of, is_declared, settable, split, without_none

KIND = "kind"
_OF_GATEWAY = frozenset({"id", "version", "created_at", "updated_at", STATUS})
_LONGEST_NAME = 64
"""Characters of an unknown name that messages repeat; the search for a similar name takes longer for longer ones."""


def kind_name(kind: Declared) -> str:
    """The name of the kind in manifests and in bodies of `apply`."""
    return kind_in_manifests(kind.name)


def members_by_name(kind: Declared) -> Mapping[str, Member]:
    """The members of a manifest of the kind, by their names there, without its key."""
    found = {one.name: one for one in settable(kind.of) if one.name != key_member(kind)}
    return {name_in_manifests(name): one for name, one in found.items()}


def is_secret(hint: Any) -> bool:
    """True if the type is that of a secret, which no response shows."""
    return getattr(bare(hint), "__name__", "") == "Secret"


def bare(hint: Any) -> Any:
    """The type without markers and without None."""
    return split(without_none(split(hint)[0]))[0]


Act = Callable[[str, object], object]
"""Returns what replaces a secret, given its pointer and value."""


def map_secrets(known: Mapping[str, Member], content: JsonObject, act: Act, pointer: str = "") -> JsonObject:
    """Return the members with each secret, at any depth, replaced by what `act` returns."""
    return {
        name: _map_member(known[name], value, act, f"{pointer}{point(name)}") if name in known else value
        for name, value in content.items()
    }


def _map_member(member: Member, value: object, act: Act, pointer: str) -> object:
    veil = member.mark(Veil)
    if veil is not None and is_object(value):
        return _map_veiled(value, veil.show(value), act, pointer)
    return _map_in(member.hint, value, act, pointer)


def _map_veiled(value: object, shown: object, act: Act, pointer: str) -> object:
    """Replace the parts that responses show as null."""
    if is_object(value) and is_object(shown):
        return {
            name: _map_veiled(each, shown.get(name), act, f"{pointer}{point(name)}") for name, each in value.items()
        }
    return act(pointer, value) if shown is None and value is not None else value


def _map_in(hint: Any, value: object, act: Act, pointer: str) -> object:
    if value is None:
        return None
    if is_secret(hint):
        return act(pointer, value)
    inner = element_of(bare(hint))
    if inner is not None and (items := to_list(value)):
        return [_map_in(inner, each, act, f"{pointer}/{place}") for place, each in enumerate(items)]
    entries = entries_of(bare(hint))
    if entries is not None and is_object(value):
        return {name: _map_in(entries[1], each, act, f"{pointer}{point(name)}") for name, each in value.items()}
    if is_declared(bare(hint)) and is_object(value):
        return map_secrets(nested_members(hint), value, act, pointer)
    return value


def nested_members(hint: Any) -> Mapping[str, Member]:
    """The members that admins set of a declared class within another."""
    return {one.shown_name: one for one in settable(bare(hint))}


def describe_unknown(name: str, known: Mapping[str, object]) -> str:
    """The reason for the refusal of an unknown name, with the most similar known one."""
    if name in _OF_GATEWAY:
        return "is set by the gateway; leave it out"
    if len(name) > _LONGEST_NAME:
        return "is unknown"
    near = get_close_matches(name, known, n=1)
    return f"is unknown; the nearest is `{near[0]}`" if near else f"is unknown; one of {', '.join(known)}"


def unknown_members(known: Mapping[str, Member], content: JsonObject, pointer: str = "") -> Iterator[Fault]:
    """Yield each member, at any depth, that the declaration does not have."""
    for name, value in content.items():
        place = f"{pointer}{point(name[:_LONGEST_NAME])}"
        member = known.get(name)
        if member is None:
            yield Fault(pointer=place, reason=describe_unknown(name, known))
        else:
            yield from _unknown_in(member.hint, value, place)


def _unknown_in(hint: Any, value: object, pointer: str) -> Iterator[Fault]:
    inner = element_of(bare(hint))
    if inner is not None:
        for place, each in enumerate(to_list(value)):
            yield from _unknown_in(inner, each, f"{pointer}/{place}")
    elif (entries := entries_of(bare(hint))) is not None and is_object(value):
        for name, each in value.items():
            yield from _unknown_in(entries[1], each, f"{pointer}{point(name[:_LONGEST_NAME])}")
    elif is_declared(bare(hint)) and is_object(value):
        yield from unknown_members(nested_members(hint), value, pointer)
