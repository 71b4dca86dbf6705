"""Interpreter of a template's nodes. Every evaluation of a value or filter is charged to the budget."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from gateway.definitions.templates.budget import RenderingBudget
from gateway.definitions.templates.expressions import Comparison, Expression, Filtered, Literal, Test
from gateway.definitions.templates.filters import FILTERS
from gateway.definitions.templates.parser import Block, IfNode, TextNode
from gateway.definitions.templates.values import are_equal, contains, is_less, lookup_member, to_text
from gateway.errors import TemplateFailed

Escape: TypeAlias = Callable[[str], str]


class Rendering:
    """State of one rendering: the variables, the budget, and the escape function for filled values."""

    def __init__(self, variables: Mapping[str, object], budget: RenderingBudget, escape: Escape | None = None) -> None:
        self._variables = variables
        self._budget = budget
        self._escape = escape

    def text(self, block: Block) -> str:
        """Return the block's output.

        Raises:
            TemplateFailed: a limit was exceeded, or a value has an unsupported type.
        """
        return "".join(self._parts(block))

    def value(self, filtered: Filtered) -> object:
        """Evaluate an expression with its filters, without converting the value to text.

        Raises:
            TemplateFailed: a limit was exceeded, or a value has an unsupported type.
        """
        value = self._value(filtered.operand)
        for call in filtered.filters:
            arguments = tuple([self._value(argument) for argument in call.arguments])
            self._budget.spend()
            try:
                value = FILTERS[call.name].run(self._budget, value, arguments)
            except UnicodeError:
                raise TemplateFailed(f"the filter '{call.name}' received text that is not valid Unicode") from None
        return value

    def holds(self, test: Test) -> bool:
        """Evaluate a condition; `and` and `or` are right-associative, as in Liquid.

        Raises:
            TemplateFailed: a limit was exceeded, or two values cannot be compared.
        """
        outcome = self._evaluate_comparison(test.comparisons[-1])
        for comparison, join in zip(reversed(test.comparisons[:-1]), reversed(test.joins), strict=True):
            outcome = (
                (self._evaluate_comparison(comparison) or outcome)
                if join == "or"
                else (outcome and self._evaluate_comparison(comparison))
            )
        return outcome

    def _parts(self, block: Block) -> Iterator[str]:
        for node in block:
            if isinstance(node, TextNode):
                self._budget.write(node.size)
                yield node.text
            elif isinstance(node, IfNode):
                yield from self._parts(self._select_branch(node))
            else:
                yield self._render_output(node)

    def _render_output(self, filtered: Filtered) -> str:
        text = to_text(self.value(filtered), self._budget)
        if self._escape is not None:
            self._budget.check_text(3 * len(text))
            text = self._escape(text)
        self._budget.write(len(text) if text.isascii() else len(text.encode("utf-8", "replace")))
        return text

    def _select_branch(self, node: IfNode) -> Block:
        for branch in node.branches:
            if branch.test is None or self.holds(branch.test):
                return branch.body
        return ()

    def _value(self, expression: Expression) -> object:
        self._budget.spend()
        if isinstance(expression, Literal):
            return expression.value
        value = self._variables.get(expression.root)
        for part in expression.parts:
            value = lookup_member(value, self._value(part))
        return value

    def _evaluate_comparison(self, comparison: Comparison) -> bool:
        left = self._value(comparison.left)
        if comparison.sign is None or comparison.right is None:
            return left is not None and left is not False
        right = self._value(comparison.right)
        match comparison.sign:
            case "==":
                return are_equal(left, right, self._budget)
            case "!=" | "<>":
                return not are_equal(left, right, self._budget)
            case "contains":
                return contains(left, right, self._budget)
            case "<":
                return is_less(left, right, self._budget)
            case ">":
                return is_less(right, left, self._budget)
            case "<=":
                return is_less(left, right, self._budget) or are_equal(left, right, self._budget)
            case _:
                return is_less(right, left, self._budget) or are_equal(left, right, self._budget)
