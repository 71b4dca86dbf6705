"""Names of tools and their arguments: unique, at most 64 characters of `A-Z`, `a-z`, `0-9`, `_`, `.` and `-`."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import msgspec

from gateway.domain.http.plans import Location
from gateway.openapi.operation.limits import MAX_NAME_LENGTH, MAX_PREFIX_LENGTH

RESERVED = frozenset(
    (
        "get_api_info",
        "list_endpoints",
        "search_endpoints",
        "get_endpoint_details",
        "list_schemas",
        "get_schema_details",
        "call_endpoint",
        "read_result",
    )
)
"""Names of the query tools and of the tool that reads large results, which no tool of an operation may have."""

BODY = "body"

_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]+")
_FOREIGN_CHARACTER = re.compile(r"[^A-Za-z0-9_.-]")
_EDGES = "_.-"


class Named(Protocol):
    """The parts of an operation that determine its tool name."""

    @property
    def identity(self) -> str:
        """`METHOD path`."""
        ...

    @property
    def method(self) -> str:
        """The HTTP method."""
        ...

    @property
    def path(self) -> str:
        """The path template."""
        ...

    @property
    def operation_id(self) -> str | None:
        """The operationId, if there is one."""
        ...


class ToolName(msgspec.Struct, frozen=True, kw_only=True):
    """The tool name of one operation, and the reason if a digest was appended."""

    text: str
    reason: str | None = None


class Variants:
    """An allocator of unique names; a name that is taken gets the next free number."""

    def __init__(self, *taken: str) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def choose(self, wanted: str, vary: Callable[[int], str]) -> str:
        """Allocate the requested name or its first free variant, from number 2 on."""
        name = wanted
        while name in self._taken:
            self._numbers[wanted] = self._numbers.get(wanted, 1) + 1
            name = vary(self._numbers[wanted])
        self._taken.add(name)
        return name


def name_tools(
    operations: Sequence[Named],
    *,
    prefix: str | None,
    known: Mapping[str, str],
    hints: Mapping[str, str] | None = None,
) -> dict[str, ToolName]:
    """Return the name of each operation, by identity. Names do not depend on the order of the document.

    An operation with a known name keeps it. Otherwise its hint (`hints`, by identity) precedes its operationId. A name
    that is too long, shared, taken or reserved ends in eight hex digits of a digest, within the length limit.
    """
    hints = hints or {}
    lead = _lead(prefix)
    kept = {item.identity: ToolName(text=known[item.identity]) for item in operations if item.identity in known}
    fresh = [item for item in operations if item.identity not in kept]
    wanted = {item.identity: lead + _plain_name(item, hints.get(item.identity)) for item in fresh}
    uses = Counter(wanted.values())
    occupied = RESERVED.union(known.values())
    named = {
        item.identity: _settle(wanted[item.identity], item.identity, uses[wanted[item.identity]], occupied)
        for item in fresh
    }
    return kept | _separate(named, occupied)


def grants(name: str, hint: str, identity: str, *, prefix: str | None) -> bool:
    """True if `name` is the hinted name, with or without the identity's digest."""
    wanted = _lead(prefix) + _cleaned(hint)
    return name in {wanted, _with_digest(wanted, identity)}


def is_respelled(wanted: str | None) -> bool:
    """True if the name has characters that no tool's name may have, or begins or ends with `_`, `.` or `-`."""
    return _cleaned(wanted) != (wanted or "")


def name_arguments(parameters: Sequence[tuple[Location, str]]) -> list[str]:
    """Name the argument of each parameter, in order; `body` is reserved for the request body."""
    plain = [_argument_name(name) for _, name in parameters]
    locations: dict[str, set[Location]] = {}
    for (location, _), name in zip(parameters, plain, strict=True):
        locations.setdefault(name, set()).add(location)
    variants = Variants(BODY)
    named: list[str] = []
    for (location, _), name in zip(parameters, plain, strict=True):
        is_shared = len(locations[name]) > 1 or name == BODY
        wanted = f"{location}_{name}"[:MAX_NAME_LENGTH] if is_shared else name
        named.append(variants.choose(wanted, partial(_number, wanted)))
    return named


def _lead(prefix: str | None) -> str:
    text = _FOREIGN.sub("_", prefix or "")[:MAX_PREFIX_LENGTH]
    return text if not text or text[-1] in _EDGES else text + "_"


def _plain_name(operation: Named, hint: str | None) -> str:
    named = _cleaned(hint) or _cleaned(operation.operation_id)
    return named or _FOREIGN.sub("_", f"{operation.method.lower()}_{operation.path}").strip(_EDGES).replace("__", "_")


def _cleaned(name: str | None) -> str:
    return _FOREIGN.sub("_", name or "").strip(_EDGES)


def _settle(wanted: str, identity: str, uses: int, occupied: frozenset[str]) -> ToolName:
    if len(wanted) > MAX_NAME_LENGTH:
        return ToolName(text=_with_digest(wanted, identity), reason=f"is longer than {MAX_NAME_LENGTH} characters")
    if uses > 1:
        return ToolName(text=_with_digest(wanted, identity), reason="belongs to several operations")
    if wanted in occupied:
        return ToolName(text=_with_digest(wanted, identity), reason="is taken or reserved")
    return ToolName(text=wanted)


def _separate(named: Mapping[str, ToolName], occupied: frozenset[str]) -> dict[str, ToolName]:
    """Resolve remaining conflicts by a further digest, such as an operationId that equals a name with a digest."""
    taken = set(occupied)
    separated: dict[str, ToolName] = {}
    for identity in sorted(named):
        name, round_ = named[identity], 0
        while name.text in taken:
            round_ += 1
            text = _with_digest(named[identity].text, f"{identity} {round_}")
            name = ToolName(text=text, reason="is taken or reserved")
        taken.add(name.text)
        separated[identity] = name
    return separated


def _with_digest(wanted: str, identity: str) -> str:
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{wanted[: MAX_NAME_LENGTH - 9].rstrip(_EDGES)}_{digest}"


def _argument_name(name: str) -> str:
    return _FOREIGN_CHARACTER.sub("_", name)[:MAX_NAME_LENGTH]


def _number(wanted: str, number: int) -> str:
    suffix = f"_{number}"
    return wanted[: MAX_NAME_LENGTH - len(suffix)] + suffix
