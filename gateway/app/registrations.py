"""What was registered in Python: the primitives, as catalogs show them, and the functions behind them.

One object for a process, filled before it serves and changed while it does. Whoever reads it sees a whole state, never
half a change, from whichever thread the change comes.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gateway.catalog.code import CodePrimitive
from gateway.domain.primitives import Family
from gateway.errors import Conflict, DuplicateToolError, NameConflict, NameTaken, NotFound
from gateway.handlers.code import CodeHandler
from gateway.openapi.naming import RESERVED

_OWNER = "code"
_BUILTIN = "builtin"
_NOUNS = {
    Family.TOOL: "tool",
    Family.RESOURCE: "resource",
    Family.TEMPLATE: "resource template",
    Family.PROMPT: "prompt",
}

_Place = tuple[Family, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One primitive, checked, and its function."""

    primitive: CodePrimitive
    handler: CodeHandler


class Registrations:
    """Everything that is registered (`catalog.code.CodeCatalog` and `handlers.code.CodeHandlers`)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: Mapping[_Place, Registration] = {}
        self._generation = 0
        self._listeners: dict[object, Callable[[], object]] = {}

    @property
    def generation(self) -> int:
        """How often it has changed."""
        return self._generation

    def primitives(self) -> Sequence[CodePrimitive]:
        """What is registered now."""
        return [kept.primitive for kept in self._kept.values()]

    def find(self, family: Family, name: str) -> CodeHandler | None:
        """The function of the primitive of this family and name (of resources: URI or URI template)."""
        found = self._kept.get((family, name))
        return None if found is None else found.handler

    def add(self, registration: Registration) -> None:
        """Register one more.

        Raises:
            NameTaken: its name is registered already, or the gateway's own; what is there stays as it is.
        """
        place = registration.primitive.family, registration.primitive.name
        with self._lock:
            _refuse_taken(place, self._kept)
            self._change({**self._kept, place: registration})
        self._tell()

    def remove(self, name: str, family: Family | None = None) -> None:
        """Take out what has this name; of one family, where several have something of the name.

        Raises:
            NotFound: nothing has.
            Conflict: several families have, and none was named.
        """
        with self._lock:
            found = [place for place in self._kept if place[1] == name and family in {None, place[0]}]
            if not found:
                raise NotFound(f"nothing named {name!r} is registered")
            if len(found) > 1:
                nouns = " and a ".join(_NOUNS[place[0]] for place in found)
                raise Conflict(f"{name!r} is a {nouns}: say which family is meant")
            self._change({place: kept for place, kept in self._kept.items() if place != found[0]})
        self._tell()

    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call this after each change, in the thread that made it; the answer ends that."""
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def _change(self, kept: Mapping[_Place, Registration]) -> None:
        self._kept = kept
        self._generation += 1

    def _tell(self) -> None:
        for listener in tuple(self._listeners.values()):
            listener()


def _refuse_taken(place: _Place, kept: Mapping[_Place, Registration]) -> None:
    family, name = place
    if family is Family.TOOL and name in RESERVED:
        raise NameTaken(
            f"the tool name '{name}' is the gateway's own", conflicts=[NameConflict(name=name, owner=_BUILTIN)]
        )
    if place not in kept:
        return
    if family is Family.TOOL:
        raise DuplicateToolError(name)
    conflict = NameConflict(name=name, owner=_OWNER)
    raise NameTaken(f"a {_NOUNS[family]} named '{name}' is registered already", conflicts=[conflict])
