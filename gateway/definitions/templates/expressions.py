"""Expressions as a tree: literals, paths, filters and conditions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gateway.definitions.templates.filters import FILTERS
from gateway.definitions.templates.limits import MAX_BRACKET_DEPTH, MAX_LITERAL_LENGTH
from gateway.definitions.templates.tokens import Word, refuse, split_expression
from gateway.definitions.templates.values import EmptyConstant
from gateway.errors import TemplateInvalid

_COMPARING = frozenset(("==", "!=", "<>", "<", ">", "<=", ">=", "contains"))
_JOINING = frozenset(("and", "or"))
_CONSTANTS: Mapping[str, object] = {
    "true": True,
    "false": False,
    "nil": None,
    "null": None,
    "empty": EmptyConstant.EMPTY,
    "blank": EmptyConstant.BLANK,
}
_LIST_FILTERS = frozenset(("compact", "concat", "map", "reverse", "sort", "split", "sum", "uniq", "where"))
"""Filters of Liquid that an older release supported."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal value."""

    value: object


@dataclass(frozen=True, slots=True)
class VariablePath:
    """A variable and the path into it."""

    root: str
    parts: tuple["Expression", ...] = ()


Expression: TypeAlias = Literal | VariablePath


@dataclass(frozen=True, slots=True)
class FilterCall:
    """A filter and its arguments."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Filtered:
    """`{{ … }}`: a value and the filters that are applied to it."""

    operand: Expression
    filters: tuple[FilterCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two values, or the truth of one value."""

    left: Expression
    sign: str | None = None
    right: Expression | None = None


@dataclass(frozen=True, slots=True)
class Test:
    """Comparisons joined by `and` and `or`, evaluated from right to left as in Liquid."""

    comparisons: tuple[Comparison, ...]
    joins: tuple[str, ...] = ()


def parse_output(text: str, line: int) -> Filtered:
    """Return the tree of a value with its filters.

    Raises:
        TemplateInvalid: the text is not a value, or a filter is unknown or has a wrong number of arguments.
    """
    reader = _ExpressionReader(text, line)
    filtered = reader.filtered()
    reader.end()
    return filtered


def parse_test(text: str, line: int) -> Test:
    """Return the tree of a condition, as it is written after `if`.

    Raises:
        TemplateInvalid: the text is not a condition.
    """
    reader = _ExpressionReader(text, line)
    test = reader.test()
    reader.end()
    return test


class _ExpressionReader:
    """Parser of one expression, from left to right."""

    def __init__(self, text: str, line: int) -> None:
        self._words = split_expression(text, line)
        self._line = line
        self._next = 0

    def filtered(self) -> Filtered:
        operand = self._value()
        filters: list[FilterCall] = []
        while self._accept("|"):
            filters.append(self._filter())
        return Filtered(operand, tuple(filters))

    def test(self) -> Test:
        comparisons = [self._comparison()]
        joins: list[str] = []
        while (word := self._peek()) is not None and word.text in _JOINING:
            self._next += 1
            joins.append(word.text)
            comparisons.append(self._comparison())
        return Test(tuple(comparisons), tuple(joins))

    def end(self) -> None:
        word = self._peek()
        if word is not None:
            raise self._error(f"unexpected '{word.text}'")

    def _filter(self) -> FilterCall:
        name = self._name()
        known = FILTERS.get(name)
        if known is None:
            hint = ": templates have no filters for lists; select parts with `result` of a request"
            raise self._error(f"there is no filter '{name}'{hint if name in _LIST_FILTERS else ''}")
        arguments: list[Expression] = []
        if self._accept(":"):
            arguments.append(self._value())
            while self._accept(","):
                arguments.append(self._value())
        if not known.min_arguments <= len(arguments) <= known.max_arguments:
            raise self._error(f"the filter '{name}' takes {known.takes}")
        return FilterCall(name, tuple(arguments))

    def _comparison(self) -> Comparison:
        left = self._value()
        word = self._peek()
        if word is None or word.kind == "text" or word.text not in _COMPARING:
            return Comparison(left)
        self._next += 1
        return Comparison(left, word.text, self._value())

    def _value(self, depth: int = MAX_BRACKET_DEPTH) -> Expression:
        """Read a literal, or a path whose brackets are nested at most `depth` deep."""
        word = self._next_word("a value")
        if word.kind == "text":
            return Literal(word.text[1:-1])
        if word.kind == "number":
            if len(word.text) > MAX_LITERAL_LENGTH:
                raise self._error("a number has too many digits")
            return Literal(float(word.text) if "." in word.text else int(word.text))
        if word.kind != "name":
            raise self._error(f"'{word.text}' is not a value")
        return Literal(_CONSTANTS[word.text]) if word.text in _CONSTANTS else self._path(word.text, depth)

    def _path(self, root: str, depth: int) -> VariablePath:
        parts: list[Expression] = []
        while True:
            if self._accept("."):
                parts.append(Literal(self._name()))
            elif self._accept("["):
                if not depth:
                    raise self._error(f"brackets are nested more than {MAX_BRACKET_DEPTH} deep")
                parts.append(self._value(depth - 1))
                if not self._accept("]"):
                    raise self._error("']' is missing")
            else:
                return VariablePath(root, tuple(parts))

    def _name(self) -> str:
        word = self._next_word("a name")
        if word.kind != "name":
            raise self._error(f"'{word.text}' is not a name")
        return word.text

    def _next_word(self, wanted: str) -> Word:
        word = self._peek()
        if word is None:
            raise self._error(f"{wanted} is missing")
        self._next += 1
        return word

    def _accept(self, sign: str) -> bool:
        """Consume the next word and return True if it is this sign; otherwise return False."""
        word = self._peek()
        if word is None or word.kind != "sign" or word.text != sign:
            return False
        self._next += 1
        return True

    def _peek(self) -> Word | None:
        return self._words[self._next] if self._next < len(self._words) else None

    def _error(self, reason: str) -> TemplateInvalid:
        return refuse(reason, self._line)
