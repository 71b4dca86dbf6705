"""Nodes of a parsed template: a tree of text, outputs and tags."""

from dataclasses import dataclass
from typing import TypeAlias

from gateway.definitions.templates.liquid.expressions import Expression, Filtered, Range, Test


@dataclass(frozen=True, slots=True)
class TextNode:
    """Text that is copied to the output."""

    text: str
    size: int


@dataclass(frozen=True, slots=True)
class OutputNode:
    """`{{ … }}`."""

    value: Filtered


@dataclass(frozen=True, slots=True)
class AssignNode:
    """`{% assign name = … %}`."""

    name: str
    value: Filtered


@dataclass(frozen=True, slots=True)
class CaptureNode:
    """`{% capture name %}…{% endcapture %}`."""

    name: str
    body: "Block"


@dataclass(frozen=True, slots=True)
class Branch:
    """A block, rendered if the result of the test equals `wanted`, or always if there is no test."""

    test: Test | None
    wanted: bool
    body: "Block"


@dataclass(frozen=True, slots=True)
class IfNode:
    """`{% if %}` and `{% unless %}`: the first branch whose test matches is rendered."""

    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class When:
    """One `{% when %}` and its values; `values` is None for `{% else %}`."""

    values: tuple[Expression, ...] | None
    body: "Block"


@dataclass(frozen=True, slots=True)
class CaseNode:
    """`{% case %}`: the first branch with an equal value, or `{% else %}`, is rendered."""

    subject: Expression
    branches: tuple[When, ...]


@dataclass(frozen=True, slots=True)
class ForNode:
    """`{% for name in … %}`."""

    name: str
    over: Expression | Range
    limit: Expression | None
    offset: Expression | None
    is_reversed: bool
    body: "Block"
    otherwise: "Block"


@dataclass(frozen=True, slots=True)
class LeaveNode:
    """`{% break %}` or `{% continue %}`."""

    ends_loop: bool


Node: TypeAlias = TextNode | OutputNode | AssignNode | CaptureNode | IfNode | CaseNode | ForNode | LeaveNode
Block: TypeAlias = tuple[Node, ...]
