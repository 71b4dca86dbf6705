"""Registrations of Python primitives: the primitives that catalogs list, and their functions.

Each gateway has one `Registrations`. Any thread can change it while the gateway serves: a change replaces the whole
mapping, so a reader never sees a partial change. Primitives of one name for different tenants are independent.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gateway.catalog.snapshots.python_primitives import PythonPrimitive
from gateway.domain.primitives import Family, OwnedName
from gateway.errors import Conflict, DuplicateToolError, NameConflict, NameTaken, NotFound
from gateway.handlers.python.registry import CodeOperation, PythonHandler
from gateway.openapi.operation.names import RESERVED

_OWNER = "code"
_BUILTIN = "builtin"
_NOUNS = {
    Family.TOOL: "tool",
    Family.RESOURCE: "resource",
    Family.TEMPLATE: "resource template",
    Family.PROMPT: "prompt",
}

_Entry = TypeVar("_Entry")
_Key = tuple[Family, str]
Tenants = Collection[str] | None
"""The slugs of the tenants that have a primitive; None means all tenants."""

Lookup = Callable[[PythonPrimitive], Sequence[OwnedName]]
"""Finds the tenants' names that would hide a primitive. It blocks, and raises Unavailable without the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One checked primitive, and its function or its operation of a document."""

    primitive: PythonPrimitive
    handler: PythonHandler | CodeOperation


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """Result of a registration: the slugs of the tenants whose own primitive hides the registered one.

    Empty if the gateway does not serve yet; `Gateway.hidden` contains the names once it serves.
    """

    hidden_for: tuple[str, ...] = ()


class Registrations:
    """All registrations. Implements `PythonPrimitives` for the catalog and `PythonHandlers` for handlers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: Mapping[_Key, Sequence[Registration]] = {}
        self._generation = 0
        self._listeners: dict[object, Callable[[], object]] = {}
        self._lookups: dict[object, Lookup] = {}
        self.hidden: Sequence[OwnedName] = ()
        """The tenants' own names that hide primitives, from the last lookup."""

    @property
    def generation(self) -> int:
        """Number of changes so far."""
        return self._generation

    def primitives(self) -> Sequence[PythonPrimitive]:
        """The registered primitives."""
        return [kept.primitive for several in self._kept.values() for kept in several]

    def find(self, family: Family, name: str, slug: str) -> PythonHandler | CodeOperation | None:
        """Return the function or operation of a tenant's primitive; `name` of a resource is its URI or URI template."""
        several = self._kept.get((family, name), ())
        # guard: code-of-its-tenant
        return next((kept.handler for kept in several if _overlap(kept.primitive.tenants, {slug})), None)

    def add(self, *registrations: Registration) -> Registered:
        """Add all registrations or none; while the gateway serves, tenants' catalogs are first searched for the names.

        Raises:
            NameTaken: a name is already registered for one of the tenants, or is a name of the gateway's own tools.
                Or each tenant in `tenants` has its own primitive of the name. Existing registrations are kept.
            Unavailable: the tenants' catalogs cannot be read now.
        """
        _with_all(self._kept, registrations)
        owned = [one for registration in registrations for one in self._look_up(registration.primitive)]
        with self._lock:
            self._change(_with_all(self._kept, registrations))
        self._notify()
        return Registered(hidden_for=tuple(dict.fromkeys(one.slug for one in owned)))

    def remove(self, name: str, family: Family | None = None, *, tenants: Tenants = None) -> None:
        """Remove the registration of this name; `family` and `tenants` select one of several.

        Raises:
            NotFound: no registration matches.
            Conflict: several registrations match.
        """
        wanted = None if tenants is None else frozenset(tenants)
        with self._lock:
            found = [
                kept
                for key, several in self._kept.items()
                for kept in several
                if key[1] == name and family in {None, key[0]} and wanted in {None, kept.primitive.tenants}
            ]
            if not found:
                raise NotFound(f"nothing named {name!r} is registered")
            if len(found) > 1:
                raise _ambiguous(name, [kept.primitive for kept in found])
            key = found[0].primitive.family, name
            left = tuple(kept for kept in self._kept[key] if kept is not found[0])
            others = {other: several for other, several in self._kept.items() if other != key}
            self._change({**others, key: left} if left else others)
        self._notify()

    def consult(self, look_up: Lookup) -> Callable[[], None]:
        """Set the function that looks up names in each `add`; the returned function removes it."""
        return _remover(self._lookups, look_up)

    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call the listener after each change, in the thread of the change; the returned function removes it."""
        return _remover(self._listeners, listener)

    def _look_up(self, primitive: PythonPrimitive) -> Sequence[OwnedName]:
        """Return the tenants' own names that hide a primitive.

        Raises:
            NameTaken: each tenant in `tenants` has its own primitive of this name.
            Unavailable: the tenants' catalogs cannot be read now.
        """
        owned = [one for look_up in tuple(self._lookups.values()) for one in look_up(primitive)]
        if primitive.tenants and primitive.tenants <= {one.slug for one in owned}:
            raise _owned_by_tenants(primitive, owned)
        return owned

    def _change(self, kept: Mapping[_Key, Sequence[Registration]]) -> None:
        self._kept = kept
        self._generation += 1

    def _notify(self) -> None:
        for listener in tuple(self._listeners.values()):
            listener()


def _with_all(
    kept: Mapping[_Key, Sequence[Registration]], added: Iterable[Registration]
) -> Mapping[_Key, Sequence[Registration]]:
    """Return the registrations with further ones; raise NameTaken if a name is taken."""
    found = dict(kept)
    for registration in added:
        primitive = registration.primitive
        _refuse_taken(primitive, found)
        key = primitive.family, primitive.name
        found[key] = (*found.get(key, ()), registration)
    return found


def _refuse_taken(primitive: PythonPrimitive, kept: Mapping[_Key, Sequence[Registration]]) -> None:
    family, name = primitive.family, primitive.name
    if family is Family.TOOL and name in RESERVED:
        raise NameTaken(
            f"the tool name '{name}' is the gateway's own", conflicts=[NameConflict(name=name, owner=_BUILTIN)]
        )
    if not any(_overlap(other.primitive.tenants, primitive.tenants) for other in kept.get((family, name), ())):
        return
    if family is Family.TOOL:
        raise DuplicateToolError(name)
    conflict = NameConflict(name=name, owner=_OWNER)
    raise NameTaken(f"a {_NOUNS[family]} named '{name}' is registered already", conflicts=[conflict])


def _owned_by_tenants(primitive: PythonPrimitive, owned: Sequence[OwnedName]) -> NameTaken:
    first = owned[0]
    message = (
        f"the tenant {first.slug} has a {_NOUNS[primitive.family]} named '{primitive.name}' already ({first.owner});"
        " register it under another name, or have the tenant rename its own"
    )
    conflicts = [NameConflict(name=one.name, owner=f"{one.slug}: {one.owner}") for one in owned]
    if primitive.family is Family.TOOL:
        return DuplicateToolError(primitive.name, message, conflicts=conflicts)
    return NameTaken(message, conflicts=conflicts)


def _ambiguous(name: str, found: Sequence[PythonPrimitive]) -> Conflict:
    nouns = list(dict.fromkeys(_NOUNS[one.family] for one in found))
    if len(nouns) > 1:
        return Conflict(f"{name!r} is a {' and a '.join(nouns)}: give the family")
    return Conflict(f"{name!r} is registered {len(found)} times for different tenants: give `tenants`")


def _overlap(some: Tenants, others: Tenants) -> bool:
    """True if the two sets of tenants overlap."""
    return some is None or others is None or not set(some).isdisjoint(others)


def _remover(entries: dict[object, _Entry], entry: _Entry) -> Callable[[], None]:
    """Add an entry; the returned function removes it."""
    token = object()
    entries[token] = entry

    def remove() -> None:
        entries.pop(token, None)

    return remove
