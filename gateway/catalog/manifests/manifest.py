"""Wanted objects of one tenant, the terms of their application, and its result."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from gateway.catalog.kinds.engines.special_functions import Compose
from gateway.catalog.manifests.limits import DEFAULT_MAX_DELETIONS, MAX_FAULTS
from gateway.catalog.manifests.targets import CollectionTarget, Target
from gateway.catalog.manifests.value_changes import ValueChange
from gateway.domain.tenancy.ownership import OwningSet
from gateway.errors import Conflict, Fault, GatewayError, InvalidBody
from gateway.kinds.manifests import below_object
from gateway.kinds.references import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One wanted object; the key of a singleton is empty."""

    target: Target
    key: str
    compose: Compose[Any]

    @property
    def address(self) -> Address:
        """The kind and the key."""
        return self.target.name, self.key

    @property
    def words(self) -> str:
        """The kind and the key for people."""
        return words_of(self.address)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A new key for an object, which keeps its id."""

    target: Target
    source: str
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTag:
    """The entity tag that an object must have; None if it must not exist."""

    target: Target
    key: str
    tag: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestSet:
    """The wanted objects, and the terms under which they are applied."""

    wanted: Sequence[Wanted]
    owner: OwningSet | None = None
    """The set that owns the objects; None owns nothing."""
    adopt: bool = False
    """True permits the set to take over objects that another set or no set owns."""
    prune: bool = False
    """True removes the objects that the set owns and does not name."""
    prune_protected: bool = False
    max_deletions: int = DEFAULT_MAX_DELETIONS
    moved: Sequence[Move] = ()
    expected: Sequence[ExpectedTag] = ()
    origin: Mapping[str, str] = field(default_factory=dict[str, str])
    """Members of the detail of each audit entry: `commit` and `author`."""
    is_dry_run: bool = False


class ManifestAction(StrEnum):
    """The effect of an application on one object."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    RENAME = "rename"
    ADOPT = "adopt"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedObject:
    """The effect on one object. `tag` is its entity tag before; None if it did not exist."""

    kind: str
    key: str
    id: str | None
    action: ManifestAction
    tag: str | None
    has_drifted: bool = False
    """True if the object differed from what its set applied last."""
    changes: Sequence[ValueChange] = ()
    secret: str | None = field(default=None, repr=False)
    """The secret that the gateway generated, shown once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferredObject:
    """An object that the wanted ones name and the manifests do not have, with its entity tag; None if it is missing."""

    kind: str
    key: str
    tag: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedSet:
    """The result; without a change, there is no revision."""

    revision: int | None
    objects: Sequence[AppliedObject]
    references: Sequence[ReferredObject] = ()


def words_of(address: Address) -> str:
    """The kind and the key of an object for people."""
    kind, key = address
    return f"{kind.replace('_', ' ')} {key}".rstrip()


def check_terms(given: ManifestSet) -> None:
    """Refuse objects that are named twice, and terms that contradict each other.

    Raises:
        InvalidBody: each fault names a place in the body.
        Conflict: everything that the set owns would be removed.
    """
    faults = [*_twice(given.wanted), *_moves(given)]
    if given.owner is None:
        reason = "needs `set`: only a set owns objects"
        faults += [Fault(pointer=f"/{name}", reason=reason) for name in _terms_of_sets(given)]
    if given.prune_protected and not given.prune:
        faults.append(Fault(pointer="/prune_protected", reason="needs `prune`"))
    if faults:
        raise InvalidBody(f"{faults[0].pointer}: {faults[0].reason}", faults=faults[:MAX_FAULTS])
    if given.prune and not given.wanted:  # guard: prune-not-empty
        reason = "is empty, and `prune` would remove all that the set owns"
        raise Conflict(f"/objects: {reason}", faults=[Fault(pointer="/objects", reason=reason)])


def locate(error: GatewayError, place: int, wanted: Wanted) -> GatewayError:
    """Return the error of one object with its place in the body."""
    return locate_at(error, f"/objects/{place}", wanted.words, below=partial(below_object, wanted.target.kind))


def locate_at(error: GatewayError, pointer: str, words: str, *, below: Callable[[str], str]) -> GatewayError:
    """Return the error of a part of the body with the words and the place of the part.

    `below` returns the place of a fault within the part.
    """
    error.message = f"{words}: {error.message}"
    error.args = (error.message,)
    faults = [replace(fault, pointer=f"{pointer}{below(fault.pointer)}") for fault in error.faults]
    error.faults = tuple(faults) or (Fault(pointer=pointer, reason=error.message),)
    return error


def _twice(wanted: Sequence[Wanted]) -> Iterator[Fault]:
    first: dict[Address, int] = {}
    for place, one in enumerate(wanted):
        if first.setdefault(one.address, place) != place:  # guard: manifest-names-once
            yield Fault(pointer=f"/objects/{place}", reason=f"names the same object as /objects/{first[one.address]}")


def _moves(given: ManifestSet) -> Iterator[Fault]:
    named = {one.address for one in given.wanted}
    seen: set[Address] = set()
    for place, move in enumerate(given.moved):
        reason = _fault_of_move(move, named, seen)
        if reason:
            yield Fault(pointer=f"/moved/{place}", reason=reason)
        seen |= {(move.target.name, move.source), (move.target.name, move.to)}


def _fault_of_move(move: Move, named: AbstractSet[Address], seen: AbstractSet[Address]) -> str:
    target, kind = move.target, move.target.name
    if not isinstance(target, CollectionTarget) or not target.collection.kind.is_renamed:
        return f"a {kind.replace('_', ' ')} cannot have another name"
    if (kind, move.to) not in named or (kind, move.source) in named:
        return "`objects` must have the new name and not the former one"
    return "names an object of another move" if {(kind, move.source), (kind, move.to)} & seen else ""


def _terms_of_sets(given: ManifestSet) -> Iterator[str]:
    yield from ("adopt",) if given.adopt else ()
    yield from ("prune",) if given.prune else ()
