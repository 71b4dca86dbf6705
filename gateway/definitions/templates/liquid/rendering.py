"""Interpreter of a template's nodes. Every node, loop round and expression is charged to the budget."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import TypeAlias, assert_never, cast

from gateway.definitions.json_access import as_list
from gateway.definitions.templates.liquid.budget import RenderingBudget
from gateway.definitions.templates.liquid.expressions import Comparison, Expression, Filtered, Literal, Range, Test
from gateway.definitions.templates.liquid.filters import FILTERS
from gateway.definitions.templates.liquid.nodes import (
    AssignNode,
    Block,
    CaptureNode,
    CaseNode,
    ForNode,
    IfNode,
    LeaveNode,
    Node,
    OutputNode,
    TextNode,
)
from gateway.definitions.templates.liquid.numbers import whole
from gateway.definitions.templates.liquid.values import (
    are_equal,
    holds,
    is_less,
    is_true,
    look_into,
    measure,
    write_out,
)
from gateway.errors import TemplateFailed

Escape: TypeAlias = Callable[[str], str]


class _Leaving(Enum):
    """Kind of the tag that ended a block early."""

    BREAK = auto()
    CONTINUE = auto()


class Rendering:
    """One rendering: the variables in scope, the budget, and the output so far."""

    def __init__(self, variables: Mapping[str, object], budget: RenderingBudget, escape: Escape | None = None) -> None:
        self._variables = variables
        self._assigned: dict[str, object] = {}
        self._sizes: dict[str, int] = {}
        self._kept = 0
        self._loops: list[tuple[str, object]] = []
        self._budget = budget
        self._escape = escape
        self._written: list[str] = []

    def text(self, block: Block) -> str:
        """Return the block's output.

        Raises:
            TemplateFailed: a limit was exceeded, or a value cannot be used.
        """
        self._block(block)
        return "".join(self._written)

    def value(self, filtered: Filtered) -> object:
        """Return the value of an expression, with its type.

        Raises:
            TemplateFailed: a limit was exceeded, or a value cannot be used.
        """
        self._budget.spend()
        value = self._value(filtered.operand)
        for call in filtered.filters:
            arguments = tuple([self._value(argument) for argument in call.arguments])
            self._budget.spend()
            try:
                value = FILTERS[call.name].run(self._budget, value, arguments)
            except UnicodeError:
                raise TemplateFailed(f"the filter '{call.name}' got text that is not valid Unicode") from None
        return value

    def holds(self, test: Test) -> bool:
        """True if a condition holds; joined comparisons are evaluated from right to left, as in Liquid.

        Raises:
            TemplateFailed: a limit was exceeded, or two values cannot be compared.
        """
        outcome = self._compares(test.comparisons[-1])
        for comparison, join in zip(reversed(test.comparisons[:-1]), reversed(test.joins), strict=True):
            outcome = (
                (self._compares(comparison) or outcome) if join == "or" else (outcome and self._compares(comparison))
            )
        return outcome

    def _block(self, block: Block) -> _Leaving | None:
        for node in block:
            self._budget.spend()
            leaving = self._node(node)
            if leaving is not None:
                return leaving
        return None

    def _node(self, node: Node) -> _Leaving | None:
        match node:
            case TextNode():
                self._budget.write(node.size)
                self._written.append(node.text)
            case OutputNode():
                self._write(self.value(node.value))
            case AssignNode():
                self._assign(node.name, self.value(node.value), is_new=bool(node.value.filters))
            case CaptureNode():
                return self._capture(node)
            case IfNode() | CaseNode():
                return self._block(self._chosen(node))
            case ForNode():
                return self._loop(node)
            case LeaveNode():
                return _Leaving.BREAK if node.ends_loop else _Leaving.CONTINUE
            case _:
                assert_never(node)
        return None

    def _write(self, value: object) -> None:
        text = write_out(value, self._budget)
        if self._escape is not None:
            self._budget.check_text(3 * len(text))
            text = self._escape(text)
        self._budget.write(len(text) if text.isascii() else len(text.encode("utf-8", "replace")))
        self._written.append(text)

    def _capture(self, node: CaptureNode) -> _Leaving | None:
        outside, escape = self._written, self._escape
        self._written, self._escape = [], None  # escaped later, when the variable is written out
        leaving = self._block(node.body)
        captured, self._written, self._escape = "".join(self._written), outside, escape
        self._assign(node.name, captured)
        return leaving

    def _assign(self, name: str, value: object, *, is_new: bool = True) -> None:
        """Assign a value. Unless `is_new`, it is a literal or a reference to another variable, of size 1."""
        self._kept -= self._sizes.pop(name, 0)
        size = measure(value, self._budget, self._budget.limits.kept) if is_new else 1
        self._sizes[name] = size + len(name)
        self._kept += self._sizes[name]
        self._budget.check_kept(self._kept)
        self._assigned[name] = value

    def _chosen(self, node: IfNode | CaseNode) -> Block:
        if isinstance(node, IfNode):
            for branch in node.branches:
                if branch.test is None or self.holds(branch.test) is branch.wanted:
                    return branch.body
            return ()
        subject = self._value(node.subject)
        for when in node.branches:
            if when.values is None or any(
                are_equal(subject, self._value(value), self._budget) for value in when.values
            ):
                return when.body
        return ()

    def _loop(self, node: ForNode) -> _Leaving | None:
        items = self._looped(node)
        if not items:
            return self._block(node.otherwise)
        total = len(items)
        self._loops.append((node.name, None))
        for index, item in enumerate(items):
            self._budget.start_round()
            self._loops[-1] = (node.name, item)
            self._loops.append(("forloop", _place(index, total)))
            leaving = self._block(node.body)
            self._loops.pop()
            if leaving is _Leaving.BREAK:
                break
        self._loops.pop()
        return None

    def _looped(self, node: ForNode) -> Sequence[object]:
        items: Sequence[object] = self._range(node.over) if isinstance(node.over, Range) else self._elements(node.over)
        start = max(0, whole(self._value(node.offset))) if node.offset is not None else 0
        stop = start + max(0, whole(self._value(node.limit))) if node.limit is not None else len(items)
        first, last = min(start, len(items)), min(stop, len(items))
        self._budget.spend(1 + (last - first) // 64)
        chosen = items[first:last]
        return chosen[::-1] if node.is_reversed else chosen

    def _range(self, over: Range) -> range:
        start, stop = whole(self._value(over.start)), whole(self._value(over.stop))
        if stop - start >= self._budget.limits.rounds:
            raise TemplateFailed(f"a range has more than {self._budget.limits.rounds} numbers")
        return range(start, stop + 1)

    def _elements(self, over: Expression) -> Sequence[object]:
        value = self._value(over)
        elements = as_list(value)
        if elements is not None:
            return elements
        if isinstance(value, dict):
            members = cast("Mapping[str, object]", value)
            self._budget.check_items(len(members))
            return [[name, member] for name, member in members.items()]
        return [value] if isinstance(value, str) and value else []

    def _value(self, expression: Expression) -> object:
        self._budget.spend()
        if isinstance(expression, Literal):
            return expression.value
        value = self._variable(expression.root)
        for part in expression.parts:
            value = look_into(value, self._value(part))
        return value

    def _variable(self, name: str) -> object:
        for loop_name, item in reversed(self._loops):
            if loop_name == name:
                return item
        return self._assigned[name] if name in self._assigned else self._variables.get(name)

    def _compares(self, comparison: Comparison) -> bool:
        left = self._value(comparison.left)
        if comparison.sign is None or comparison.right is None:
            return is_true(left)
        right = self._value(comparison.right)
        match comparison.sign:
            case "==":
                return are_equal(left, right, self._budget)
            case "!=" | "<>":
                return not are_equal(left, right, self._budget)
            case "contains":
                return holds(left, right, self._budget)
            case "<":
                return is_less(left, right, self._budget)
            case ">":
                return is_less(right, left, self._budget)
            case "<=":
                return is_less(left, right, self._budget) or are_equal(left, right, self._budget)
            case _:
                return is_less(right, left, self._budget) or are_equal(left, right, self._budget)


def _place(index: int, total: int) -> dict[str, object]:
    return {
        "index": index + 1,
        "index0": index,
        "rindex": total - index,
        "rindex0": total - index - 1,
        "first": index == 0,
        "last": index == total - 1,
        "length": total,
    }
