"""Expressions of Liquid as a tree: literals, paths, ranges, filters and conditions."""

from dataclasses import dataclass
from typing import TypeAlias

from gateway.definitions.templates.liquid.filters import FILTERS
from gateway.definitions.templates.liquid.tokens import Word, refuse, split_expression
from gateway.definitions.templates.liquid.values import Nothing
from gateway.errors import TemplateInvalid

_DEEPEST = 16
_LONGEST_NUMBER = 24
_COMPARING = frozenset(("==", "!=", "<>", "<", ">", "<=", ">=", "contains"))
_JOINING = frozenset(("and", "or"))


_CONSTANTS: dict[str, object] = {
    "true": True,
    "false": False,
    "nil": None,
    "null": None,
    "empty": Nothing.EMPTY,
    "blank": Nothing.BLANK,
}


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal value."""

    value: object


@dataclass(frozen=True, slots=True)
class VariablePath:
    """A variable and the path into it."""

    root: str
    parts: tuple["Expression", ...] = ()


@dataclass(frozen=True, slots=True)
class Range:
    """`(start..stop)`, both included; only loops use it."""

    start: "Expression"
    stop: "Expression"


Expression: TypeAlias = Literal | VariablePath


@dataclass(frozen=True, slots=True)
class FilterCall:
    """A filter and its arguments."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Filtered:
    """A value and the filters that are applied to it."""

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


class ExpressionReader:
    """Parser of one expression, from left to right."""

    def __init__(self, text: str, line: int) -> None:
        self._words = split_expression(text, line)
        self._line = line
        self._next = 0
        self._depth = 0

    def filtered(self) -> Filtered:
        """Read a value with its filters.

        Raises:
            TemplateInvalid: the next words are no value, or a filter is unknown or has a wrong number of arguments.
        """
        operand = self.value()
        filters: list[FilterCall] = []
        while self.takes("|"):
            filters.append(self._filter())
        return Filtered(operand, tuple(filters))

    def test(self) -> Test:
        """Read a condition.

        Raises:
            TemplateInvalid: the next words are not a condition.
        """
        comparisons = [self._comparison()]
        joins: list[str] = []
        while (word := self._peek()) is not None and word.text in _JOINING:
            self._next += 1
            joins.append(word.text)
            comparisons.append(self._comparison())
        return Test(tuple(comparisons), tuple(joins))

    def value(self) -> Expression:
        """Read a literal or a path.

        Raises:
            TemplateInvalid: the next words are neither, a number is too long, or brackets are nested too deeply.
        """
        word = self.take("a value")
        if word.kind == "text":
            return Literal(word.text[1:-1])
        if word.kind == "number":
            return Literal(self._number(word.text))
        if word.kind == "name":
            return Literal(_CONSTANTS[word.text]) if word.text in _CONSTANTS else self._path(word.text)
        raise self.wrong(f"'{word.text}' is not a value")

    def looped(self) -> Expression | Range:
        """Read the operand of a loop: a value, or a range of whole numbers.

        Raises:
            TemplateInvalid: the next words are neither.
        """
        if not self.takes("("):
            return self.value()
        start = self.value()
        self.expect("..")
        stop = self.value()
        self.expect(")")
        return Range(start, stop)

    def name(self) -> str:
        """Read a name.

        Raises:
            TemplateInvalid: the next word is not a name.
        """
        word = self.take("a name")
        if word.kind != "name":
            raise self.wrong(f"'{word.text}' is not a name")
        return word.text

    def take(self, wanted: str) -> Word:
        """Consume and return the next word, of any kind.

        Raises:
            TemplateInvalid: no word is left; the message names `wanted` as missing.
        """
        word = self._peek()
        if word is None:
            raise self.wrong(f"{wanted} is missing")
        self._next += 1
        return word

    def takes(self, text: str) -> bool:
        """Consume the next word and return True if it is `text`; otherwise return False."""
        word = self._peek()
        if word is None or word.text != text or word.kind == "text":
            return False
        self._next += 1
        return True

    def expect(self, text: str) -> None:
        """Consume the next word, which must be `text`.

        Raises:
            TemplateInvalid: the next word is different, or no word is left.
        """
        if not self.takes(text):
            raise self.wrong(f"'{text}' is missing")

    def end(self) -> None:
        """Check that no words are left.

        Raises:
            TemplateInvalid: a word is left.
        """
        word = self._peek()
        if word is not None:
            raise self.wrong(f"'{word.text}' is not understood here")

    @property
    def is_done(self) -> bool:
        """True if all words are consumed."""
        return self._peek() is None

    def wrong(self, reason: str) -> TemplateInvalid:
        """Return the error for a fault in this expression."""
        return refuse(reason, self._line)

    def _peek(self) -> Word | None:
        return self._words[self._next] if self._next < len(self._words) else None

    def _filter(self) -> FilterCall:
        name = self.name()
        known = FILTERS.get(name)
        if known is None:
            raise self.wrong(f"there is no filter '{name}'")
        arguments: list[Expression] = []
        if self.takes(":"):
            arguments.append(self.value())
            while self.takes(","):
                arguments.append(self.value())
        if not known.least <= len(arguments) <= known.most:
            raise self.wrong(f"the filter '{name}' takes {known.takes}")
        return FilterCall(name, tuple(arguments))

    def _comparison(self) -> Comparison:
        left = self.value()
        word = self._peek()
        if word is None or word.kind == "text" or word.text not in _COMPARING:
            return Comparison(left)
        self._next += 1
        return Comparison(left, word.text, self.value())

    def _number(self, text: str) -> int | float:
        if len(text) > _LONGEST_NUMBER:
            raise self.wrong("a number has too many digits")
        return float(text) if "." in text else int(text)

    def _path(self, root: str) -> VariablePath:
        parts: list[Expression] = []
        while True:
            if self.takes("."):
                parts.append(Literal(self.name()))
            elif self.takes("["):
                parts.append(self._index())
            else:
                return VariablePath(root, tuple(parts))

    def _index(self) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.wrong(f"brackets are nested more than {_DEEPEST} deep")
        index = self.value()
        self.expect("]")
        self._depth -= 1
        return index
