"""Parser of the pieces of a template into a tree of nodes. Unknown tags and filters are refused."""

from collections.abc import Callable, Mapping

from gateway.definitions.templates.liquid.expressions import Expression, ExpressionReader, Test
from gateway.definitions.templates.liquid.nodes import (
    AssignNode,
    Block,
    Branch,
    CaptureNode,
    CaseNode,
    ForNode,
    IfNode,
    LeaveNode,
    Node,
    OutputNode,
    TextNode,
    When,
)
from gateway.definitions.templates.liquid.tokens import Piece, PieceKind, refuse, split_template

_DEEPEST = 20


def parse_template(source: str) -> Block:
    """Return the tree of a template.

    Raises:
        TemplateInvalid: the template is too long or not well-formed; the fault has the line.
    """
    return _Parser(split_template(source)).template()


def parse_test(text: str) -> Test:
    """Return the tree of a condition, as it is written after `if`.

    Raises:
        TemplateInvalid: the text is not a condition.
    """
    reader = ExpressionReader(text, 1)
    test = reader.test()
    reader.end()
    return test


class _Parser:
    """Reads pieces from left to right; recursive for nested blocks."""

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = pieces
        self._next = 0
        self._depth = 0
        self._loops = 0
        self._tag = ""
        self._rest = ""
        self._line = 1

    def template(self) -> Block:
        """Read the whole template."""
        block = self._block(frozenset())
        if self._tag:
            raise refuse(f"'{self._tag}' closes nothing here", self._line)
        return block

    def _block(self, closing: frozenset[str]) -> Block:
        """Read nodes up to one of the closing tags, which is then in `_tag`; `_tag` is empty at the template's end."""
        nodes: list[Node] = []
        while self._next < len(self._pieces):
            piece = self._pieces[self._next]
            self._next += 1
            if piece.kind is PieceKind.TEXT:
                nodes.append(TextNode(piece.text, len(piece.text.encode("utf-8", "replace"))))
            elif piece.kind is PieceKind.OUTPUT:
                nodes.append(self._output(piece))
            else:
                self._open(piece)
                if self._tag in closing:
                    return tuple(nodes)
                nodes.extend(self._node())
        self._tag = ""
        return tuple(nodes)

    def _open(self, piece: Piece) -> None:
        name, _, rest = piece.text.replace("\n", " ").replace("\t", " ").partition(" ")
        self._tag, self._rest, self._line = name, rest.strip(), piece.line

    def _output(self, piece: Piece) -> OutputNode:
        reader = ExpressionReader(piece.text, piece.line)
        value = reader.filtered()
        reader.end()
        return OutputNode(value)

    def _node(self) -> tuple[Node, ...]:
        if self._tag.startswith("#"):
            return ()
        known = _TAGS.get(self._tag)
        if known is None:
            raise refuse(f"there is no tag '{self._tag}' here", self._line)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise refuse(f"blocks are nested more than {_DEEPEST} deep", self._line)
        node = known(self)
        self._depth -= 1
        return (node,)

    def _reader(self) -> ExpressionReader:
        return ExpressionReader(self._rest, self._line)

    def _body(self, *closing: str) -> Block:
        opened, line = self._tag, self._line
        block = self._block(frozenset(closing))
        if not self._tag:
            raise refuse(f"'{closing[-1]}' is missing for '{opened}'", line)
        return block

    def _nothing_more(self) -> None:
        self._reader().end()

    def assign(self) -> Node:
        reader = self._reader()
        name = reader.name()
        reader.expect("=")
        value = reader.filtered()
        reader.end()
        return AssignNode(name, value)

    def capture(self) -> Node:
        reader = self._reader()
        name = reader.name()
        reader.end()
        return CaptureNode(name, self._body("endcapture"))

    def if_(self) -> Node:
        return IfNode(tuple(self._branches("endif", wanted=True)))

    def unless(self) -> Node:
        return IfNode(tuple(self._branches("endunless", wanted=False)))

    def _branches(self, end: str, *, wanted: bool) -> list[Branch]:
        branches: list[Branch] = []
        while True:
            reader = self._reader()
            test = None if self._tag == "else" else reader.test()
            reader.end()
            is_last = self._tag == "else"
            body = self._body(*(() if is_last else ("elsif", "else")), end)
            branches.append(Branch(test, wanted if not branches else True, body))
            if self._tag == end:
                self._nothing_more()
                return branches

    def case(self) -> Node:
        reader = self._reader()
        subject = reader.value()
        reader.end()
        if any(isinstance(node, TextNode) and node.text.strip() for node in self._body("when", "else", "endcase")):
            raise refuse("there is text between 'case' and its first 'when'", self._line)
        branches: list[When] = []
        while self._tag != "endcase":
            values = None if self._tag == "else" else self._values()
            branches.append(When(values, self._body(*(() if values is None else ("when", "else")), "endcase")))
        self._nothing_more()
        return CaseNode(subject, tuple(branches))

    def _values(self) -> tuple[Expression, ...]:
        reader = self._reader()
        values = [reader.value()]
        while reader.takes(",") or reader.takes("or"):
            values.append(reader.value())
        reader.end()
        return tuple(values)

    def for_(self) -> Node:
        reader = self._reader()
        name = reader.name()
        reader.expect("in")
        over = reader.looped()
        limit = offset = None
        is_reversed = False
        while not reader.is_done:
            option = reader.name()
            if option == "reversed":
                is_reversed = True
            elif option in {"limit", "offset"}:
                reader.expect(":")
                value = reader.value()
                limit, offset = (value, offset) if option == "limit" else (limit, value)
            else:
                raise reader.wrong(f"'{option}' is not understood here")
        self._loops += 1
        body = self._body("else", "endfor")
        self._loops -= 1
        otherwise = self._body("endfor") if self._tag == "else" else ()
        self._nothing_more()
        return ForNode(name, over, limit, offset, is_reversed, body, otherwise)

    def echo(self) -> Node:
        reader = self._reader()
        value = reader.filtered()
        reader.end()
        return OutputNode(value)

    def leave(self) -> Node:
        if not self._loops:
            raise refuse(f"'{self._tag}' is outside a loop", self._line)
        self._nothing_more()
        return LeaveNode(ends_loop=self._tag == "break")


_TAGS: Mapping[str, Callable[[_Parser], Node]] = {
    "assign": _Parser.assign,
    "break": _Parser.leave,
    "capture": _Parser.capture,
    "case": _Parser.case,
    "continue": _Parser.leave,
    "echo": _Parser.echo,
    "for": _Parser.for_,
    "if": _Parser.if_,
    "unless": _Parser.unless,
}
