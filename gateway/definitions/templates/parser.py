"""Parser of a template into a tree of text, outputs and branches. Unknown tags and filters are refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gateway.definitions.templates.expressions import Filtered, Test, parse_output, parse_test
from gateway.definitions.templates.limits import MAX_BLOCK_DEPTH
from gateway.definitions.templates.tokens import Piece, PieceKind, refuse, split_template

_TAGS = frozenset(("if", "elsif", "else", "endif"))
_NO_LOOPS = (
    "templates have no loops; `{{ list }}` alone in a JSON string keeps the list, and the filters `json` and `join` "
    "write it"
)
_NO_VARIABLES = "templates cannot define variables; write the value where it is used"
_REMOVED: Mapping[str, str] = {
    "#": "use the tag 'comment'",
    "assign": _NO_VARIABLES,
    "break": _NO_LOOPS,
    "capture": _NO_VARIABLES,
    "case": "use 'if' and 'elsif'",
    "continue": _NO_LOOPS,
    "echo": "use {{ … }}",
    "for": _NO_LOOPS,
    "unless": "use 'if' with 'else', or the opposite comparison",
}
"""Tags of Liquid that an older release supported, with their replacement."""


@dataclass(frozen=True, slots=True)
class TextNode:
    """Text that is copied to the output; `size` is in bytes."""

    text: str
    size: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A block, rendered if the test holds, or always if there is no test."""

    test: Test | None
    body: "Block"


@dataclass(frozen=True, slots=True)
class IfNode:
    """`{% if %}`: the first branch whose test holds is rendered."""

    branches: tuple[Branch, ...]


Node: TypeAlias = TextNode | Filtered | IfNode
Block: TypeAlias = tuple[Node, ...]


def parse_template(source: str) -> Block:
    """Return the tree of a template.

    Raises:
        TemplateInvalid: the template is too long or not well-formed; the fault has the line.
    """
    return _Parser(split_template(source)).template()


class _Parser:
    """Reads pieces from left to right; recursive for nested branches."""

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = iter(pieces)
        self._tag = ""
        self._rest = ""
        self._line = 1

    def template(self) -> Block:
        """Read the whole template."""
        block = self._block(MAX_BLOCK_DEPTH)
        if self._tag:
            raise refuse(f"'{self._tag}' has no 'if'", self._line)
        return block

    def _block(self, depth: int) -> Block:
        """Read nodes up to `elsif`, `else` or `endif`, which is then in `_tag`; it is empty at the template's end."""
        nodes: list[Node] = []
        for piece in self._pieces:
            if piece.kind is PieceKind.TEXT:
                nodes.append(TextNode(piece.text, len(piece.text.encode("utf-8", "replace"))))
            elif piece.kind is PieceKind.OUTPUT:
                nodes.append(parse_output(piece.text, piece.line))
            else:
                self._open(piece)
                if self._tag != "if":
                    return tuple(nodes)
                nodes.append(self._if(depth))
        self._tag = ""
        return tuple(nodes)

    def _open(self, piece: Piece) -> None:
        self._tag, self._rest = (*piece.text.split(maxsplit=1), "", "")[:2]
        self._line = piece.line
        if self._tag in _REMOVED:
            raise refuse(f"'{self._tag}' is not supported: {_REMOVED[self._tag]}", self._line)
        if self._tag not in _TAGS:
            raise refuse(f"unknown tag '{self._tag}'", self._line)
        if self._rest and self._tag in {"else", "endif"}:
            raise refuse(f"unexpected '{self._rest}'", self._line)

    def _if(self, depth: int) -> IfNode:
        opened = self._line
        if not depth:
            raise refuse(f"blocks are nested more than {MAX_BLOCK_DEPTH} deep", opened)
        branches: list[Branch] = []
        while self._tag != "endif":
            if branches and branches[-1].test is None:
                raise refuse(f"'{self._tag}' follows 'else'", self._line)
            test = None if self._tag == "else" else parse_test(self._rest, self._line)
            branches.append(Branch(test, self._block(depth - 1)))
            if not self._tag:
                raise refuse("'endif' is missing for 'if'", opened)
        return IfNode(tuple(branches))
