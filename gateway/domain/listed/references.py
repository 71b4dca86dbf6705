"""References of a stored schema, and the names below `$defs` under which a listed schema has their targets."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from gateway.domain.json_access import Object, as_list, as_object, tokens_of

_HOLDERS = ("$defs", "definitions")
_ANCHORS = ("$anchor", "$dynamicAnchor", "$id")
_ROOT = "root"


class ReferenceTargets:
    """The schemas that references name; each is handed out once, to be written below `$defs`."""

    def __init__(self, schema: Object) -> None:
        self._schema = schema
        self._names: dict[tuple[str, ...], str] = {}
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._waiting: list[tuple[str, object]] = []
        self._anchors: Mapping[str, tuple[str, ...]] | None = None

    def name_of(self, ref: object) -> str | None:
        """The name below `$defs` of the target; None if the reference leads nowhere."""
        path = self._path_of(ref)
        if path is None:
            return None
        if path not in self._names:
            found = self.resolve(path)
            if found is None:
                return None
            self._names[path] = self._new_name(path)
            self._waiting.append((self._names[path], found[0]))
        return self._names[path]

    def target_of(self, ref: object) -> Object | None:
        """The schema that a reference names; None if it leads nowhere, or to `true` or `false`."""
        path = self._path_of(ref)
        found = None if path is None else self.resolve(path)
        return None if found is None else as_object(found[0])

    def next(self) -> tuple[str, object] | None:
        """The next named schema that is not written yet."""
        return self._waiting.pop() if self._waiting else None

    def in_order(self, written: Mapping[str, Any]) -> dict[str, Any]:
        """The written schemas in the order of the stored schema, and then the others."""
        stored = [name for holder in _HOLDERS for name in as_object(self._schema.get(holder)) or ()]
        return {name: written[name] for name in stored if name in written} | dict(written)

    def resolve(self, path: tuple[str, ...]) -> tuple[object] | None:
        """The value at a path, as a tuple of one; None if there is none."""
        value: object = self._schema
        for token in path:
            members, elements = as_object(value), as_list(value)
            if members is not None and token in members:
                value = members[token]
            elif elements is not None and token.isdecimal() and int(token) < len(elements):
                value = elements[int(token)]
            else:
                return None
        return (value,)

    def _path_of(self, ref: object) -> tuple[str, ...] | None:
        if not isinstance(ref, str) or not ref.startswith("#"):
            return None
        fragment = unquote(ref[1:])
        if not fragment or fragment.startswith("/"):
            return tuple(tokens_of(fragment))
        if self._anchors is None:
            self._anchors = _anchors_of(self._schema)
        return self._anchors.get(fragment)

    def _new_name(self, path: tuple[str, ...]) -> str:
        wanted = path[1] if len(path) == 2 and path[0] in _HOLDERS else "_".join(path[-1:]) or _ROOT
        number = self._numbers.get(wanted, 1)  # lower numbers of the name stay taken, so each is tried once
        name = wanted if number == 1 else f"{wanted}_{number}"
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._numbers[wanted] = number
        self._taken.add(name)
        return name


def _anchors_of(schema: Object) -> Mapping[str, tuple[str, ...]]:
    """The places of all anchors, the first of each name; an `$id` that begins with `#` is one in draft-07."""
    found: dict[str, tuple[str, ...]] = {}
    waiting: list[tuple[tuple[str, ...], object]] = [((), schema)]
    while waiting:
        path, value = waiting.pop()
        if (members := as_object(value)) is not None:
            names = (members.get(keyword) for keyword in _ANCHORS)
            found |= {name.removeprefix("#"): path for name in names if isinstance(name, str) and name not in found}
            waiting += [((*path, name), one) for name, one in members.items()]
        else:
            waiting += [((*path, str(index)), one) for index, one in enumerate(as_list(value) or ())]
    return found
