"""Lexer: splits a template into text, outputs and tags, and an expression into words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from gateway.errors import Fault, TemplateInvalid

LONGEST = 64 * 1024

_OPENING = re.compile(r"\{\{-?|\{%-?")
_VERBATIM = {name: re.compile(r"\{%-?\s*end" + name + r"\s*-?%\}") for name in ("raw", "comment")}
_WORD = re.compile(
    r"""(?P<space>\s+)
    |(?P<text>"[^"]*"|'[^']*')
    |(?P<number>-?\d+(?:\.\d+)?)
    |(?P<name>[^\W\d][\w-]*)
    |(?P<sign>==|!=|<>|<=|>=|\.\.|[<>.|:,\[\]()=])""",
    re.VERBOSE,
)


class PieceKind(StrEnum):
    """Kind of a template's piece."""

    TEXT = "text"
    OUTPUT = "output"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class Piece:
    """A section of a template and the line on which it begins."""

    kind: PieceKind
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Word:
    """One word of an expression: its kind (`text`, `number`, `name` or `sign`) and its source text."""

    kind: str
    text: str


def refuse(reason: str, line: int) -> TemplateInvalid:
    """Return the error for a fault on a line."""
    return TemplateInvalid(f"line {line}: {reason}", faults=[Fault(pointer="", reason=reason, line=line)])


def split_template(source: str) -> list[Piece]:
    """Return the pieces of a template in order; comments and empty text are omitted.

    Raises:
        TemplateInvalid: the template is too long, or an output, tag, `raw` or `comment` is not closed.
    """
    if len(source) > LONGEST:
        raise refuse(f"a template has at most {LONGEST} characters", 1)
    return list(_Splitter(source).pieces())


class _Splitter:
    """One pass over a template, from left to right."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._position = 0
        self._line = 1
        self._trims_next = False

    def pieces(self) -> Iterator[Piece]:
        """Return text and markup in order."""
        while (found := _OPENING.search(self._source, self._position)) is not None:
            opening = found[0]
            yield from self._text(found.start(), trims_end=opening.endswith("-"))
            yield from self._markup(found.end(), "}}" if opening.startswith("{{") else "%}")
        yield from self._text(len(self._source), trims_end=False)

    def _text(self, end: int, *, trims_end: bool) -> Iterator[Piece]:
        line, text = self._line, self._take(end)
        if self._trims_next:
            text = text.lstrip()
        if trims_end:
            text = text.rstrip()
        self._trims_next = False
        if text:
            yield Piece(PieceKind.TEXT, text, line)

    def _take(self, end: int) -> str:
        taken = self._source[self._position : end]
        self._line += taken.count("\n")
        self._position = end
        return taken

    def _markup(self, start: int, closing: str) -> Iterator[Piece]:
        line = self._line
        end = self._source.find(closing, start)
        if end < 0:
            raise refuse(f"'{closing}' is missing", line)
        inner = self._source[start:end]
        self._take(end + 2)
        self._trims_next = inner.endswith("-")
        inner = inner.removesuffix("-").strip()
        if closing == "%}" and inner in _VERBATIM:
            yield from self._verbatim(inner, line)
        else:
            yield Piece(PieceKind.OUTPUT if closing == "}}" else PieceKind.TAG, inner, line)

    def _verbatim(self, name: str, line: int) -> Iterator[Piece]:
        found = _VERBATIM[name].search(self._source, self._position)
        if found is None:
            raise refuse(f"'{{% end{name} %}}' is missing", line)
        text = self._take(found.start())
        if self._trims_next:
            text = text.lstrip()
        ending = self._take(found.end())
        self._trims_next = ending.endswith("-%}")
        if name == "raw" and text:
            yield Piece(PieceKind.TEXT, text.rstrip() if ending.startswith("{%-") else text, line)


def split_expression(text: str, line: int) -> list[Word]:
    """Return the words of an expression.

    Raises:
        TemplateInvalid: a character belongs to no word.
    """
    words: list[Word] = []
    position = 0
    while position < len(text):
        found = _WORD.match(text, position)
        if found is None or found.lastgroup is None:
            raise refuse(f"'{text[position]}' is not understood here", line)
        if found.lastgroup != "space":
            words.append(Word(found.lastgroup, found[0]))
        position = found.end()
    return words
