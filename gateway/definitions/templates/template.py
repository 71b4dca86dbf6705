"""Texts and JSON trees with placeholders: a subset of Liquid without loops, with limits on work and output.

The variables are plain JSON values, so a template can access neither Python objects nor secrets. `budget` defines the
limits, which hold for any template and any variables.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.definitions.templates.budget import RenderingBudget
from gateway.definitions.templates.expressions import Filtered, Test, parse_test
from gateway.definitions.templates.limits import MAX_TREE_DEPTH, MAX_TREE_NODES
from gateway.definitions.templates.parser import Block, IfNode, TextNode, parse_template
from gateway.definitions.templates.rendering import Escape, Rendering
from gateway.definitions.templates.values import measure
from gateway.domain.json_access import as_list, as_object, point
from gateway.errors import Fault, TemplateInvalid

_TREE_OUTPUT = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Template:
    """A text with placeholders."""

    source: str
    block: Block = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> "Template":
        """Parse a template.

        Raises:
            TemplateInvalid: the text is not well-formed, or uses an unknown tag or filter; the fault has the line.
        """
        return cls(text, parse_template(text))

    @property
    def is_constant(self) -> bool:
        """True if the parsed template contains only text, so its result is always the same."""
        return all(isinstance(node, TextNode) for node in self.block)

    def is_filtered_by(self, name: str) -> bool:
        """True if this filter is the last one of every value that the template fills in."""
        return _is_filtered(self.block, name)

    def render(self, variables: Mapping[str, object], *, escape: Escape | None = None) -> str:
        """Return the text with its placeholders filled. `escape` is applied to the filled values only.

        Raises:
            TemplateFailed: a limit was exceeded, or a value cannot be used.
        """
        return Rendering(variables, RenderingBudget(), escape).text(self.block)

    def fill(self, variables: Mapping[str, object], budget: RenderingBudget) -> object:
        """Return the typed value if the template is exactly one `{{ … }}`, otherwise its text.

        Raises:
            TemplateFailed: a limit of the shared budget was exceeded, or a value cannot be used.
        """
        rendering = Rendering(variables, budget)
        if len(self.block) != 1 or not isinstance(self.block[0], Filtered):
            return rendering.text(self.block)
        value = rendering.value(self.block[0])
        budget.write(measure(value, budget, budget.max_output))
        return value


def _is_filtered(block: Block, name: str) -> bool:
    for node in block:
        if isinstance(node, IfNode):
            if not all(_is_filtered(branch.body, name) for branch in node.branches):
                return False
        elif isinstance(node, Filtered) and not (node.filters and node.filters[-1].name == name):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Condition:
    """A Liquid condition without a tag, such as `answer.action == "accept"`."""

    source: str
    test: Test = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Parse a condition.

        Raises:
            TemplateInvalid: the text is not a condition.
        """
        return cls(text, parse_test(text, 1))

    def holds(self, variables: Mapping[str, object]) -> bool:
        """True if the condition holds for these variables.

        Raises:
            TemplateFailed: a limit was exceeded, or two values cannot be compared.
        """
        return Rendering(variables, RenderingBudget()).holds(self.test)


_Node: TypeAlias = "Template | dict[str, _Node] | list[_Node] | str | int | float | bool | None"


@dataclass(frozen=True, slots=True)
class Tree:
    """A JSON value whose strings are templates; names of members are not templates.

    A string that is exactly one `{{ … }}` is replaced by the value of any type. Filled values cannot change other
    parts.
    """

    source: object
    node: _Node = field(compare=False, repr=False)
    is_constant: bool = field(compare=False, repr=False)

    @classmethod
    def parse(cls, value: object) -> "Tree":
        """Parse every string of a JSON value.

        Raises:
            TemplateInvalid: a string is not well-formed, or the value is too deep, too large or not JSON. The fault has
            a JSON Pointer.
        """
        reader = _TreeReader()
        return cls(value, reader.read(value, (), MAX_TREE_DEPTH), reader.is_constant)

    def render(self, variables: Mapping[str, object]) -> object:
        """Return the value with its strings filled. A constant tree returns `source` itself; treat it as read-only.

        Raises:
            TemplateFailed: a limit was exceeded, or a value cannot be used.
        """
        return self.source if self.is_constant else _fill(self.node, variables, RenderingBudget(output=_TREE_OUTPUT))


def is_open(text: str) -> bool:
    """True if the text may contain placeholders."""
    return "{{" in text or "{%" in text


class _TreeReader:
    """One pass over a value that counts its nodes."""

    def __init__(self) -> None:
        self._nodes = 0
        self.is_constant = True

    def read(self, value: object, path: tuple[str | int, ...], depth: int) -> _Node:
        self._nodes += 1
        if not depth or self._nodes > MAX_TREE_NODES:
            raise _refuse(path, f"a tree has at most {MAX_TREE_DEPTH} levels and {MAX_TREE_NODES} values")
        if isinstance(value, str):
            return self._text(value, path)
        if value is None or isinstance(value, bool | int | float):
            return value
        mapping = as_object(value)
        if mapping is not None:
            return {name: self.read(member, (*path, name), depth - 1) for name, member in mapping.items()}
        elements = as_list(value)
        if elements is None:
            raise _refuse(path, "it is not a JSON value")
        return [self.read(element, (*path, index), depth - 1) for index, element in enumerate(elements)]

    def _text(self, text: str, path: tuple[str | int, ...]) -> _Node:
        if not is_open(text):
            return text
        self.is_constant = False
        try:
            return Template.parse(text)
        except TemplateInvalid as wrong:
            raise _refuse(path, wrong.faults[0].reason, wrong.faults[0].line) from None


def _fill(node: _Node, variables: Mapping[str, object], budget: RenderingBudget) -> object:
    budget.spend()
    if isinstance(node, Template):
        return node.fill(variables, budget)
    if isinstance(node, dict):
        return {name: _fill(member, variables, budget) for name, member in node.items()}
    if isinstance(node, list):
        return [_fill(element, variables, budget) for element in node]
    return node


def _refuse(path: tuple[str | int, ...], reason: str, line: int | None = None) -> TemplateInvalid:
    return TemplateInvalid(reason, faults=[Fault(pointer=point(*path), reason=reason, line=line)])
