"""Prose of code, tests and documents uses standard terms (`python -m tests.prose [PATH]`, a part of `make check`).

A docstring, a description of a field, the help of an option and a title begin with no indirect question. No docstring,
comment, message or page has a word of `AVOIDED`, no name one of `UNUSUAL`. A message is a string with a space; in
tests, where strings are data, the message of an assertion or an exception. A sentence of a page has at most 25 words
between its full stops, colons and semicolons, a cell of a table 20.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
CODE = ("gateway", "migrations", "examples", "benchmarks", "deploy", "tests")
PAGES = (
    ROOT / "docs",
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "RELEASE", "SECURITY", "CHANGELOG")),
)
MAX_WORDS_OF_SENTENCE = 25
MAX_WORDS_OF_CELL = 20
QUESTIONS = frozenset({"whether", "what", "how", "when", "where", "who", "whom", "whose", "which", "why"})
_CLAUSES = frozenset({"when", "where"})
"""Words that may begin the sentence after a prefix such as `Ours:`, as a clause of time or place."""
_PREFIX = re.compile(r"([A-Z][\w .§-]{0,28}): (?=\w)")
SHOWN = frozenset({"description", "help"})
"""Keyword arguments whose text users see in the reference pages."""
AVOIDED = re.compile(
    r"\b(whoever|somebody|nobody|anybody|he|him|his|himself|anew|mend(?:s|ed|ing)?|wish(?:es|ed)?"
    r"|call(?:s|ed|ing)? off|stands?|stood|tells?|told|hears?|heard|says?|said)\b",
    re.IGNORECASE,
)
UNUSUAL = re.compile(
    r"anew|anybody|crowds|desk|doors|hear[ds]?|lanes?|leash|mend(?:ed|ing)|nobody|outlets?|pulse|roster|said|says?|shelf"
    r"|somebody|stands|stood|tells?|tether|told|whoever|wish(?:ed|es)?"
)
"""Words of no name: metaphors, people, and verbs with a standard term (`mend` is a field of the admin API)."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_QUOTED = re.compile(r"`[^`]*`")
_GENERATED = re.compile(r"Written by `python -m ")
"""A page whose words come from code: they are checked there."""
_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"\A\s*([-*]|\d+\.) ")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?])\**\s+(?=[A-Z`\"(*])|(?<=[;:])\**\s+")
_WORD = re.compile(r"\S*[\w…]\S*")


def complaints(paths: Iterable[Path]) -> Iterator[str]:
    """Every docstring, comment, message and name that breaks a rule, with its place."""
    for path in sorted(paths):
        text = path.read_text()
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        tree = ast.parse(text)
        is_test = path.is_relative_to(TESTS)
        for line, name in _names(tree):
            for word in filter(UNUSUAL.fullmatch, (part.lower() for part in _WORDS.findall(name))):
                yield f"{shown}:{line}: avoid {word!r} in the name {name}"
            yield from unclear_test(f"{shown}:{line}", name)
        for line, docstring in _docstrings(tree):
            yield from question(f"{shown}:{line}", docstring)
            yield from avoided(f"{shown}:{line}", docstring)
        if not is_test:
            for line, description in _descriptions(tree):
                yield from question(f"{shown}:{line}", description)
        for line, comment in _comments(text):
            yield from avoided(f"{shown}:{line}", comment)
        for line, message in _raised(tree) if is_test else _messages(tree):
            yield from avoided(f"{shown}:{line}", message)


def unclear_test(place: str, name: str) -> Iterator[str]:
    """The name of a test states a fact; it is no indirect question."""
    if name.startswith("test_") and name.split("_")[1] in QUESTIONS - _CLAUSES:
        yield f"{place}: the name {name} is an indirect question"


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Docstrings of modules, classes, functions, and of the constants above them."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for part in node.body:
            if (
                isinstance(part, ast.Expr)
                and isinstance(part.value, ast.Constant)
                and isinstance(part.value.value, str)
            ):
                yield part.lineno, part.value.value.strip() or "(empty)"


def _descriptions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in SHOWN:
            yield from _messages(node.value)


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names that the module defines: functions, classes, parameters, variables, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case _:
                pass


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _messages(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Strings with a space that are no docstrings; `…` replaces the values of an f-string."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Constant(value=str(text), lineno=line):
            if " " in text:
                yield line, text
        case ast.JoinedStr(values=parts, lineno=line):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
            if " " in text:
                yield line, text
            for part in parts:
                if isinstance(part, ast.FormattedValue):
                    yield from _messages(part.value)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _messages(child)


def _raised(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Messages of assertions and exceptions."""
    for node in ast.walk(tree):
        match node:
            case ast.Assert(msg=ast.expr() as message):
                yield from _messages(message)
            case ast.Raise(exc=ast.expr() as error):
                yield from _messages(error)
            case _:
                pass


def question(place: str, text: str) -> Iterator[str]:
    """A text or the sentence after its prefix that begins with an indirect question."""
    found = _PREFIX.match(text)
    for start, words in ((text, QUESTIONS), (text[found.end() :] if found else "", QUESTIONS - _CLAUSES)):
        if start.strip() and start.split(maxsplit=1)[0].strip(",:?").lower() in words:
            yield f"{place}: begins with an indirect question: {text.splitlines()[0]}"


def avoided(place: str, text: str) -> Iterator[str]:
    """The words of `AVOIDED` in a text, outside code spans."""
    plain = " ".join(_QUOTED.sub("`…`", text).split())
    for found in AVOIDED.finditer(plain):
        yield f"{place}: avoid {found.group()!r}: {plain[max(0, found.start() - 30) : found.end() + 30]}"


def page_complaints(paths: Iterable[Path]) -> Iterator[str]:
    """Every title, sentence and cell of a page, outside code blocks, that breaks a rule, with its place."""
    for path in sorted(paths):
        text = path.read_text()
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        is_generated = bool(_GENERATED.search(text[:400]))
        for line, block in _blocks(text):
            plain = _LINK.sub(r"\1", _QUOTED.sub("`…`", block))
            yield from avoided(f"{shown}:{line}", plain)
            if block.startswith("#"):
                yield from question(f"{shown}:{line}", re.sub(r"^[#\d. ]+", "", plain))
            elif not is_generated:
                yield from _lengths(f"{shown}:{line}", plain)


def _lengths(place: str, block: str) -> Iterator[str]:
    is_row = block.startswith("|")
    limit = MAX_WORDS_OF_CELL if is_row else MAX_WORDS_OF_SENTENCE
    parts = block.strip("|").split("|") if is_row else _END.split(_ITEM.sub("", block))
    for part in parts:
        count = len(_WORD.findall(part))
        if count > limit:
            yield f"{place}: {count} words, at most {limit}: {part.strip()}"


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Titles, rows, list items and paragraphs outside code blocks, each in one line, with the line of its start."""
    is_code, start, lines = False, 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_fence = bool(_FENCE.match(line))
        is_alone = is_fence or is_code or line.startswith(("#", "|")) or not line.strip()
        if lines and (is_alone or _ITEM.match(line)):
            yield start, " ".join(lines)
            lines = []
        if is_fence:
            is_code = not is_code
        elif not is_alone:
            start = start if lines else number
            lines.append(line.strip())
        elif not is_code and line.strip():
            yield number, line.strip()


def main(names: Iterable[str]) -> int:
    """Print the complaints about files or folders, or about all; return 1 if there is one."""
    places = [ROOT / name for name in names] or [*(ROOT / name for name in CODE), *PAGES]
    files = [path for place in places for path in (place.rglob("*.[pm][yd]") if place.is_dir() else [place])]
    modules = complaints(path for path in files if path.suffix == ".py")
    pages = page_complaints(path for path in files if path.suffix == ".md")
    found = [*modules, *pages]
    print("\n".join(found) or "no complaints")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
