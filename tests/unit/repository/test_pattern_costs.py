"""Every regular expression of the gateway reads hostile texts in linear time.

The texts follow from the pattern: each repetition is pumped, and what leads to it is repeated. `re` counts no steps, so
the measure is the processor time of this thread, with a budget that is ten times what a linear pattern needs.
"""

import importlib
import pkgutil
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import gateway

_LENGTHS = (24, 200, 1_500, 8_000, 30_000)
"""Lengths of the texts in order: a pattern that backtracks exponentially exceeds the budget with the first."""
_BUDGET_S, _BUDGET_OF_A_SIGN_S = 0.020, 2e-6
_PARSER: Any = importlib.import_module("re._parser")
_SIGNS = "a0A _-.,:;/\\\"'!?#%&{}[]()<>=*+|~^$@`\n\t\x00é"
_UNBOUNDED = 64
"""Repetitions up to this number are pumped too: `{0,200}` costs as much as a short text."""

_ENDED: Mapping[str, str] = {
    "gateway.definitions.templates.tokens._MARKUP": "the loop over matches refuses the first block that is not closed",
}
"""Patterns that are not linear over all matches of a text, with the reason why no text costs that."""


def _patterns() -> Mapping[str, re.Pattern[Any]]:
    found: dict[str, re.Pattern[Any]] = {}
    for module in pkgutil.walk_packages(gateway.__path__, "gateway."):
        if "__main__" not in module.name:
            for name, value in vars(importlib.import_module(module.name)).items():
                for place, one in enumerate(_held(value)):
                    if one.pattern not in {other.pattern for other in found.values()}:
                        found[f"{module.name}.{name}" + (f"[{place}]" if place else "")] = one
    return found


def _held(value: object) -> Iterator[re.Pattern[Any]]:
    """The patterns in a value of a module: itself, or in its collections and tuples."""
    if isinstance(value, re.Pattern):
        held: re.Pattern[Any] = cast("Any", value)
        yield held
    elif isinstance(value, Mapping):
        for one in cast("Mapping[object, object]", value).values():
            yield from _held(one)
    elif isinstance(value, tuple | list | frozenset | set):
        for one in cast("Iterable[object]", value):
            yield from _held(one)


_ALL = _patterns()
_USES = re.compile(r"\b(\w+)(?:\[\w+\])?\.(match|fullmatch|search|findall|finditer|sub|subn|split)\b")
_USED = frozenset(
    (path.stem, *use)
    for path in Path(gateway.__path__[0]).rglob("*.py")
    for use in _USES.findall(path.read_text(encoding="utf-8"))
)


def _methods(name: str) -> Sequence[str]:
    """The methods that code calls on a pattern of this name; all of them if none is found."""
    module, _, variable = name.partition("[")[0].rpartition(".")
    own = module.rpartition(".")[2]
    used = {method for stem, owner, method in _USED if owner == variable and (stem == own or owner[0] != "_")}
    matching = {"match", "fullmatch", "search"} & used
    return sorted(matching | ({"findall"} if used - matching else set())) or ["findall", "fullmatch", "search"]


@pytest.mark.parametrize("name", sorted(_ALL))
def test_a_pattern_reads_hostile_texts_in_linear_time(name: str) -> None:
    """Attack: a text that makes a pattern read it again from each character holds the event loop (ISO-2)."""
    if name in _ENDED:
        return
    pattern, methods = _ALL[name], _methods(name)
    for text in _hostile(pattern):
        for act in (getattr(pattern, method) for method in methods):
            assert _is_quick(act, text), (act.__name__, text[:80], len(text))


@pytest.mark.parametrize("text", [r"(a+)+$", r"\s+$", r"a*b", r"//[^@]*@", r'"(?:[^"]|x)*"'])
def test_a_pattern_that_is_not_linear_is_noticed(text: str) -> None:
    """Ours: the check above finds exponential and quadratic patterns."""
    pattern = re.compile(text)

    assert not all(_is_quick(pattern.search, hostile) for hostile in _hostile(pattern))


def _is_quick(act: Any, text: Any) -> bool:
    """True if one of three attempts is within the budget."""
    for _ in range(3):
        before = time.thread_time()
        act(text)
        if time.thread_time() - before <= _BUDGET_S + _BUDGET_OF_A_SIGN_S * len(text):
            return True
    return False


def _hostile(pattern: re.Pattern[Any]) -> Iterator[Any]:
    tree = _PARSER.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    pumps = list(dict.fromkeys(_pumps(list(tree))))
    for length in _LENGTHS:
        for prefix, body in pumps:
            for text in _texts(prefix, body, length):
                yield text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def _texts(prefix: str, body: str, length: int) -> Iterable[str]:
    """Texts that pump the body, and texts that repeat the beginning; each also with a sign that ends no match."""
    whole = prefix + body
    for text in (prefix + body * (length // len(body)), whole * (length // len(whole))):
        yield text
        yield text + "\x01"


def _pumps(nodes: Sequence[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The text before each repetition, and of one repetition; also the whole text, as a repetition of itself."""
    start = prefix
    for kind, value in nodes:
        match str(kind):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, inner = value
                body = _sample(list(inner))
                if high >= _UNBOUNDED and body:
                    yield prefix, body
                yield from _pumps(list(inner), prefix)
                prefix += body * min(low, _UNBOUNDED)
            case "SUBPATTERN":
                yield from _pumps(list(value[-1]), prefix)
                prefix += _sample(list(value[-1]))
            case "ATOMIC_GROUP":
                yield from _pumps(list(value), prefix)
                prefix += _sample(list(value))
            case "BRANCH":
                for option in value[1]:
                    yield from _pumps(list(option), prefix)
                prefix += _sample(list(value[1][0]))
            case "ASSERT" | "ASSERT_NOT":
                yield from _pumps(list(value[1]), prefix)
            case _:
                prefix += _sample([(kind, value)])
    if prefix != start:
        yield start, prefix[len(start) :]


def _sample(nodes: Sequence[Any]) -> str:
    """A short text that matches, apart from assertions."""
    text = ""
    for kind, value in nodes:
        match str(kind):
            case "LITERAL":
                text += chr(value)
            case "NOT_LITERAL":
                text += next(sign for sign in _SIGNS if ord(sign) != value)
            case "ANY":
                text += "a"
            case "IN":
                text += _member(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                text += _sample(list(value[2])) * min(max(value[0], 1), _UNBOUNDED)
            case "SUBPATTERN":
                text += _sample(list(value[-1]))
            case "ATOMIC_GROUP":
                text += _sample(list(value))
            case "BRANCH":
                text += _sample(list(value[1][0]))
            case _:
                pass
    return text


def _member(items: Sequence[Any]) -> str:
    """A sign of a class."""
    candidates = [chr(value) for kind, value in items if str(kind) == "LITERAL"]
    candidates += [chr(value[0]) for kind, value in items if str(kind) == "RANGE"]
    return next((sign for sign in [*_SIGNS, *candidates] if _holds(items, sign)), "a")


def _holds(items: Sequence[Any], sign: str) -> bool:
    is_negated = str(items[0][0]) == "NEGATE"
    return is_negated != any(_is_of(str(kind), value, sign) for kind, value in items)


def _is_of(kind: str, value: Any, sign: str) -> bool:
    match kind:
        case "LITERAL":
            return sign == chr(value)
        case "RANGE":
            return ord(sign) in range(value[0], value[1] + 1)
        case "CATEGORY":
            letter = str(value).removeprefix("CATEGORY_").removeprefix("NOT_")[0].lower()
            return bool(re.match(f"\\{letter.upper() if 'NOT_' in str(value) else letter}", sign))
        case _:
            return False
