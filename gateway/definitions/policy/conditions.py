"""Conditions of policy rules on the arguments of a call: true, false, or not decidable.

A condition is not decidable if its argument is missing, has another type or an ambiguous name, or only resembles the
value. The caller of this module then takes the stricter decision. So an unexpected form of the arguments can bypass
neither a restricting nor a relaxing rule.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, cast

import jsonschema_rs

from gateway.definitions.limits import MAX_COMPILED_PATTERN_BYTES
from gateway.definitions.policy.limits import MAX_MEMBERS, MAX_TEXT_LENGTH
from gateway.definitions.policy.paths import is_inside
from gateway.domain.json_access import is_number, tokens_of
from gateway.domain.tenancy.policy import ArgumentCondition, ConditionOperator, ConditionValue

Truth = bool | None
"""The outcome of a condition; None if it is not decidable."""

_Test = Callable[[object], Truth]


class Unclear(Exception):  # the key is the outcome of a comparison
    """A pointer does not identify one member of these arguments."""


_MISSING = object()
"""A missing argument. Every test except `exists` treats it as another type, so it is not decidable."""
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_AMBIGUOUS = frozenset({"M", "C", "Z"})
_ASCII_LOOSE = dict.fromkeys((*range(33), 127))


class CompiledCondition:
    """A condition, with its pointer split and its pattern compiled."""

    __slots__ = ("_test", "_tokens", "pointer")

    def __init__(self, condition: ArgumentCondition) -> None:
        self.pointer = condition.pointer
        self._tokens = [(token, fold(token)) for token in tokens_of(condition.pointer)]
        self._test = _compile(condition)

    def holds(self, arguments: Mapping[str, object]) -> Truth:
        """Return the outcome for these arguments."""
        try:
            return self._test(self._find(arguments))
        except Unclear:  # guard: pointer-unclear
            return None

    def _find(self, value: object) -> object:
        """Return the value at the pointer, or `_MISSING`.

        Raises:
            Unclear: another member resembles the wanted name, or the path leads through a string, number or list.
        """
        for token, folded in self._tokens:
            if isinstance(value, dict):
                value = _member(cast("dict[str, object]", value), token, folded)
            elif isinstance(value, list) and _is_index(token):
                items = cast("list[object]", value)
                value = items[int(token)] if int(token) < len(items) else _MISSING
            else:
                raise Unclear
            if value is _MISSING:
                return value
        return value


def _member(members: dict[str, object], name: str, folded: str) -> object:
    """Return the member. Some JSON parsers ignore the case of names, so a second, similar name makes the member
    unclear.
    """
    if len(members) > MAX_MEMBERS:
        raise Unclear
    for key in members:
        if key != name and (len(key) > MAX_TEXT_LENGTH or fold(key) == folded):  # guard: resembling-names
            raise Unclear
    return members.get(name, _MISSING)


def _is_index(token: str) -> bool:
    return _INDEX.fullmatch(token) is not None


def is_pattern(text: str) -> bool:
    """True if the pattern can be searched in linear time and little memory."""
    try:
        _searcher(text)
    except ValueError:
        return False
    return True


def _compile(condition: ArgumentCondition) -> _Test:
    given = condition.value
    match condition.operator:
        case ConditionOperator.IN:
            tests = [_equality(value) for value in cast("Sequence[ConditionValue]", given)]
            return lambda value: _any(test(value) for test in tests)
        case ConditionOperator.EQUALS:
            return _equality(cast("ConditionValue", given))
        case ConditionOperator.NOT_EQUALS:
            return _negated(_equality(cast("ConditionValue", given)))
        case ConditionOperator.EXISTS:
            return lambda value: (value is not _MISSING) is given
        case ConditionOperator.CONTAINS:
            return _containing(cast("ConditionValue", given))
        case operator if isinstance(given, str):
            return _TEXTS[operator](given)
        case operator:
            return _comparison(operator, cast("float", given))


def _equality(wanted: ConditionValue) -> _Test:
    if isinstance(wanted, str):
        return _text_test(wanted, lambda text, given: text == given)

    def equals(value: object) -> Truth:
        if isinstance(wanted, bool) or isinstance(value, bool):
            return value is wanted if isinstance(value, bool) and isinstance(wanted, bool) else None
        return value == wanted if _is_finite(value) else None

    return equals


def _comparison(operator: ConditionOperator, limit: float) -> _Test:
    compare = _COMPARISONS[operator]
    return lambda value: compare(cast("float", value), limit) if _is_finite(value) else None


def _text_test(wanted: str, test: Callable[[str, str], bool]) -> _Test:
    """Return a test that is true for the exact text, and not decidable for a similar one."""
    folded = fold(wanted)

    def holds(value: object) -> Truth:
        if not isinstance(value, str):
            return None
        if test(value, wanted):
            return True
        if len(value) > MAX_TEXT_LENGTH:
            return None
        return None if test(fold(value), folded) else False  # guard: resembling-texts

    return holds


def _containing(wanted: ConditionValue) -> _Test:
    equals = _equality(wanted)
    inside = _text_test(wanted, lambda text, given: given in text) if isinstance(wanted, str) else None

    def holds(value: object) -> Truth:
        if isinstance(value, list):
            items = cast("list[object]", value)
            return None if len(items) > MAX_MEMBERS else _any(equals(item) for item in items)
        return None if inside is None else inside(value)

    return holds


def _matching(pattern: str) -> _Test:
    is_found = _searcher(pattern)

    def holds(value: object) -> Truth:
        if not isinstance(value, str) or len(value) > MAX_TEXT_LENGTH:
            return None
        try:
            return True if is_found(value) else None if is_found(_plain(value)) else False
        except ValueError:  # a lone surrogate
            return None

    return holds


def _searcher(pattern: str) -> Callable[[str], bool]:
    """Return a search for the pattern by the linear-time engine of JSON Schema's `pattern`.

    Raises:
        ValueError: the pattern is not valid, or needs too much memory.
    """
    options: Any = jsonschema_rs.RegexOptions(size_limit=MAX_COMPILED_PATTERN_BYTES)
    return jsonschema_rs.Draft202012Validator({"pattern": pattern}, offline=True, pattern_options=options).is_valid


_TEXTS: Mapping[ConditionOperator, Callable[[str], _Test]] = {
    ConditionOperator.STARTS_WITH: lambda given: _text_test(given, str.startswith),
    ConditionOperator.INSIDE: lambda root: lambda value: is_inside(value, root) if isinstance(value, str) else None,
    ConditionOperator.OUTSIDE: lambda root: _negated(
        lambda value: is_inside(value, root) if isinstance(value, str) else None
    ),
    ConditionOperator.MATCHES: _matching,
}
_COMPARISONS: Mapping[ConditionOperator, Callable[[float, float], bool]] = {
    ConditionOperator.GREATER: lambda value, limit: value > limit,
    ConditionOperator.LESS: lambda value, limit: value < limit,
    ConditionOperator.AT_LEAST: lambda value, limit: value >= limit,
    ConditionOperator.AT_MOST: lambda value, limit: value <= limit,
}


def _negated(test: _Test) -> _Test:
    def holds(value: object) -> Truth:
        found = test(value)
        return None if found is None else not found

    return holds


def _any(found: Iterable[Truth]) -> Truth:
    """Disjunction of Kleene's logic."""
    outcomes = set(found)
    return True if True in outcomes else None if None in outcomes else False


def _is_finite(value: object) -> bool:
    return is_number(value) and (isinstance(value, int) or isfinite(cast("float", value)))


def fold(text: str) -> str:
    """Return the text without letter case, accents, compatibility forms, spaces, control and invisible characters."""
    if text.isascii():
        return text.casefold().translate(_ASCII_LOOSE)
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return "".join(char for char in decomposed if unicodedata.category(char)[0] not in _AMBIGUOUS)


def _plain(text: str) -> str:
    """Return the text without accents, compatibility forms and invisible characters, in its letter case."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if unicodedata.category(char) not in {"Cf", "Mn"})
