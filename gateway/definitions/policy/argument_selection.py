"""Selection of a call's arguments for the audit trail: kept, hashed or dropped.

Names of hashed and dropped arguments are compared without letter case and invisible characters, because many JSON
parsers treat such names as equal. Arguments that a rule names are read first, so that other arguments cannot exhaust
the limits.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple, TypeAlias, cast

from gateway.definitions.credential_names import is_count, is_secret_name
from gateway.definitions.policy.conditions import fold
from gateway.definitions.policy.limits import MAX_NAME_LENGTH, MAX_READ
from gateway.domain.json_access import tokens_of
from gateway.domain.tenancy.policy import RecordingRule

_DEEPEST = 32
_ANY = "*"
_NAME_MEMBERS = frozenset(("name", "key", "header", "field", "parameter", "param", "id"))
_VALUE_MEMBERS = frozenset(("value", "values", "val", "content", "contents", "data", "text"))
_PAIR = 2
"""Members of an object that is a pair, such as a header: `{"name": "Authorization", "value": "…"}`."""


class Treatment(Enum):
    """Result of the selection for one value."""

    KEPT = auto()
    HASHED = auto()
    DROPPED = auto()
    CUT = auto()
    """Neither read nor recorded, because it is too deep, its name is too long, or there are too many values."""


class Selected(NamedTuple):
    """A value at a path of member names and indexes. A kept or hashed value is a scalar or an empty container."""

    path: tuple[str, ...]
    treatment: Treatment
    value: object


class _NameToken(NamedTuple):
    name: str
    folded: str


_Patterns: TypeAlias = Sequence[tuple[Treatment, Sequence[_NameToken]]]
"""The remaining tokens of each pointer below the current value."""


class ArgumentSelection:
    """A compiled rule; the values at the pointers `unrecorded` are dropped, too."""

    def __init__(self, rule: RecordingRule, *, unrecorded: Sequence[str] = ()) -> None:
        kinds = (
            (Treatment.DROPPED, (*rule.drop, *unrecorded)),
            (Treatment.HASHED, rule.hash),
            (Treatment.KEPT, rule.keep),
        )
        self._patterns = [(kind, _split(pointer)) for kind, pointers in kinds for pointer in pointers]

    def select(self, arguments: Mapping[str, object]) -> Iterator[Selected]:
        """Yield the values that the rule selects. If the limit of values is reached, the last item is a cut at the
        root.
        """
        for number, found in enumerate(_walk(arguments, (), self._patterns, None)):
            if number >= MAX_READ:  # guard: recorded-arguments-read
                yield Selected((), Treatment.CUT, None)
                return
            if found is not None:
                yield found


def _split(pointer: str) -> Sequence[_NameToken]:
    return [_NameToken(name, fold(name)) for name in tokens_of(pointer)]


def _walk(
    value: object, path: tuple[str, ...], patterns: _Patterns, above: Treatment | None
) -> Iterator[Selected | None]:
    """Yield at least one item for each visited value, so that the caller can count them; None for unrecorded values."""
    ended = {treatment for treatment, tokens in patterns if not tokens} | {above}
    if Treatment.DROPPED in ended:
        yield Selected(path, Treatment.DROPPED, None)
        return
    treatment = next((one for one in (Treatment.HASHED, Treatment.KEPT) if one in ended), None)
    children = _children(value, patterns, has_all=treatment is not None)
    if children is None or not value:
        yield None if treatment is None else Selected(path, treatment, value)
        return
    yield None
    hidden = _hidden_parts(value)
    for name, child in children:
        below = (*path, name)
        if len(name) > MAX_NAME_LENGTH or len(below) > _DEEPEST:
            yield Selected(path, Treatment.CUT, None)
            continue
        folded = fold(name)
        is_named = isinstance(value, dict) and (_is_credential(name, child) or _is_credential(folded, child))
        if is_named or folded in hidden:  # guard: recorded-credential-names
            yield Selected(below, Treatment.DROPPED, None)
            continue
        left = [
            (kind, tokens[1:])
            for kind, tokens in patterns
            if tokens and _fits(tokens[0], name, folded, is_exact=kind is Treatment.KEPT)
        ]
        if left or treatment is not None:
            yield from _walk(child, below, left, treatment)
        else:
            yield None


def _children(value: object, patterns: _Patterns, *, has_all: bool) -> Iterator[tuple[str, object]] | None:
    """The members or elements that a pattern can select, exact names first; None if the value is not a container."""
    wanted = [tokens[0].name for _, tokens in patterns if tokens]
    has_all = has_all or _ANY in wanted
    if isinstance(value, dict):
        return _members(cast("dict[str, object]", value), dict.fromkeys(wanted), has_all=has_all)
    if isinstance(value, list):
        items = cast("list[object]", value)
        places = range(len(items)) if has_all else sorted({int(one) for one in wanted if _is_index(one, len(items))})
        return ((str(place), items[place]) for place in places)
    return None


def _members(
    members: Mapping[str, object], wanted: Mapping[str, None], *, has_all: bool
) -> Iterator[tuple[str, object]]:
    yield from ((name, members[name]) for name in wanted if name in members)
    if has_all:
        yield from ((name, child) for name, child in members.items() if name not in wanted)


def _is_index(text: str, count: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(count)) and int(text) < count


def _fits(token: _NameToken, name: str, folded: str, *, is_exact: bool) -> bool:
    if token.name in {_ANY, name}:
        return True
    return not is_exact and token.folded == folded  # guard: recorded-resembling-names


def _hidden_parts(value: object) -> frozenset[str]:
    """The parts of a pair whose other part is the name of a credential; a pair is an object or a list of two."""
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        named = (text for name, text in members.items() if fold(name) in _NAME_MEMBERS and isinstance(text, str))
        return _VALUE_MEMBERS if any(map(_is_short_secret_name, named)) else frozenset()
    pair = cast("list[object]", value)
    has_name = len(pair) == _PAIR and isinstance(pair[0], str) and _is_short_secret_name(pair[0])
    return frozenset("1") if has_name else frozenset()


def _is_short_secret_name(name: str) -> bool:
    return len(name) <= MAX_NAME_LENGTH and is_secret_name(name)


def _is_credential(name: str, value: object) -> bool:
    """True if the name is that of a credential, so that the value is never recorded."""
    if value is None or isinstance(value, bool) or not is_secret_name(name):
        return False
    return not (isinstance(value, int | float) and is_count(name))
