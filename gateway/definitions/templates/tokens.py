"""Lexer: splits a template into text, outputs and tags, and an expression into words."""

import re
from dataclasses import dataclass
from enum import StrEnum

from gateway.definitions.templates.limits import MAX_TEMPLATE_LENGTH
from gateway.errors import Fault, TemplateInvalid

_MARKUP = re.compile(
    r"""\{%-?\s*(?P<name>raw|comment)\s*(?P<first>-?)%\}(?P<body>.*?)\{%(?P<last>-?)\s*end(?P=name)\s*-?%\}
    |(?:(?P<output>\{\{)|\{%)-?(?P<inner>.*?)(?P<closing>-?(?(output)\}\}|%\})|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(
    r"""(?P<space>\s+)
    |(?P<text>"[^"]*"|'[^']*')
    |(?P<number>-?\d+(?:\.\d+)?)
    |(?P<name>[^\W\d][\w-]*)
    |(?P<sign>==|!=|<>|<=|>=|[<>.|:,\[\]])""",
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
    if len(source) > MAX_TEMPLATE_LENGTH:
        raise refuse(f"a template has at most {MAX_TEMPLATE_LENGTH} characters", 1)
    pieces: list[Piece] = []
    position, line, trims = 0, 1, False
    for found in _MARKUP.finditer(source):
        text = source[position : found.start()]
        pieces.append(_text(text, line, trims_start=trims, trims_end=found[0][2:3] == "-"))
        line += text.count("\n")
        if found["name"] is None:
            pieces.append(_markup(found, line))
        elif found["name"] == "raw":
            pieces.append(_text(found["body"], line, trims_start=bool(found["first"]), trims_end=bool(found["last"])))
        line += found[0].count("\n")
        position, trims = found.end(), found[0][-3] == "-"
    pieces.append(_text(source[position:], line, trims_start=trims, trims_end=False))
    return [piece for piece in pieces if piece.text or piece.kind is not PieceKind.TEXT]


def _text(text: str, line: int, *, trims_start: bool, trims_end: bool) -> Piece:
    if trims_start:
        text = text.lstrip()
    return Piece(PieceKind.TEXT, text.rstrip() if trims_end else text, line)


def _markup(found: re.Match[str], line: int) -> Piece:
    is_output, inner = found["output"] is not None, found["inner"].strip()
    if not found["closing"]:
        raise refuse(f"'{'}}' if is_output else '%}'}' is missing", line)
    if not is_output and inner in {"raw", "comment"}:
        raise refuse(f"'{{% end{inner} %}}' is missing", line)
    return Piece(PieceKind.OUTPUT if is_output else PieceKind.TAG, inner, line)


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
            raise refuse(f"unexpected '{text[position]}'", line)
        if found.lastgroup != "space":
            words.append(Word(found.lastgroup, found[0]))
        position = found.end()
    return words
