"""Kinds and members of manifests, from the declarations: names, keys, secrets, and checks of what a document holds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from gateway.cli.input.json_fields import JsonObject, is_object, to_list
from gateway.domain.json_access import point
from gateway.errors import Fault
from gateway.kinds.index import KINDS
from gateway.kinds.kind import Kind
from gateway.kinds.members import STATUS, Member, cached, element_of, is_declared, settable, split, without_none
from gateway.kinds.singleton import Singleton
from gateway.kinds.singletons import SINGLETONS

Declared = Kind[Any] | Singleton[Any]
KIND, RENAMED = "kind", "type"
"""The name of a manifest's kind, and the name in manifests of a member that is itself called so."""
_OF_GATEWAY = frozenset({"id", "version", "created_at", "updated_at", STATUS})
_LONGEST_NAME = 64
"""Characters of an unknown name that messages repeat; the search for a similar name takes longer for longer ones."""


def kind_name(kind: Declared) -> str:
    """The name of the kind in manifests and in bodies of `apply`, such as `webhook-endpoint`."""
    return kind.name.replace("_", "-")


@cached
def kinds_by_name() -> Mapping[str, Declared]:
    """All kinds by their names, singletons first."""
    every: Sequence[Declared] = (*SINGLETONS, *KINDS)
    return {kind_name(kind): kind for kind in every}


def key_of(kind: Declared) -> str | None:
    """The member that names an object of the kind; None for a singleton."""
    return kind.keyed if isinstance(kind, Kind) else None


def members_by_name(kind: Declared) -> Mapping[str, Member]:
    """The members of a manifest of the kind, by their names there, without its key."""
    found = {one.name: one for one in settable(kind.of) if one.name != key_of(kind)}
    return {name_in_manifest(name): one for name, one in found.items()}


def name_in_manifest(name: str) -> str:
    """The name in manifests of a member."""
    return RENAMED if name == KIND else name


def is_secret(hint: Any) -> bool:
    """True if the type is that of a secret, which no response shows."""
    return getattr(bare(hint), "__name__", "") == "Secret"


def bare(hint: Any) -> Any:
    """The type without markers and without None."""
    return split(without_none(split(hint)[0]))[0]


def map_secrets(
    known: Mapping[str, Member], content: JsonObject, act: Callable[[str, object], object], pointer: str = ""
) -> JsonObject:
    """Return the members with each secret, at any depth, replaced by what `act` returns for its pointer and value."""
    return {
        name: _map_in(known[name].hint, value, act, f"{pointer}{point(name)}") if name in known else value
        for name, value in content.items()
    }


def _map_in(hint: Any, value: object, act: Callable[[str, object], object], pointer: str) -> object:
    if value is None:
        return None
    if is_secret(hint):
        return act(pointer, value)
    inner = element_of(bare(hint))
    if inner is not None and (items := to_list(value)):
        return [_map_in(inner, each, act, f"{pointer}/{place}") for place, each in enumerate(items)]
    if is_declared(bare(hint)) and is_object(value):
        return map_secrets(nested_members(hint), value, act, pointer)
    return value


def nested_members(hint: Any) -> Mapping[str, Member]:
    """The members that admins set of a declared class within another."""
    return {one.name: one for one in settable(bare(hint))}


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
    elif is_declared(bare(hint)) and is_object(value):
        yield from unknown_members(nested_members(hint), value, pointer)
