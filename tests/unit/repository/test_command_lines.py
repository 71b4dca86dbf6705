"""Command lines in README, docs, deploy and examples: the command line, make or Python accepts each of them."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from gateway.admin.routes.index import ENDPOINTS
from gateway.admin.routes.index import ROOT as ADMIN
from gateway.cli.main import gateway

ROOT = Path(__file__).parents[3]
_PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "deploy/**/*.md", "examples/**/*.md", "benchmarks/**/*.md")
    for page in (path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern))
    if page != "CHANGELOG.md"  # the past
)
_SHELLS = {"", "console", "sh", "bash", "text"}
_FENCE = re.compile(r"^ *```(.*)\n((?:.*\n)*?) *```$", re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`((?:\.venv/bin/)?(?:gateway|make|python -m) [^`\n]+)`(?!`)")
_ENTRY = re.compile(r'"command": "gateway",\s*"args": (\[[^\]]*\])')
_NESTED = re.compile(r"\$\(([^()]+)\)")
_TEXTS = {"gateway audit export 1"}
"""Texts that are no commands: the label in the seal of an export."""
_ENDS = {"|", "||", "&&", ";", "&", "(", ")", "`"}
_REDIRECTIONS = {">", ">>", ">&", "<", "2>"}


class Command(NamedTuple):
    """The words of one command; a whole one has all that is required."""

    words: list[str]
    is_whole: bool


def commands_of(text: str) -> Iterator[Command]:
    """Every command that a page shows: in blocks, in configurations of clients, and inside of sentences."""
    for language, block in _FENCE.findall(text):
        if language.strip() in _SHELLS:
            for line in _lines(block):
                yield from (Command(words, is_whole=True) for words in _split(line))
    for arguments in _ENTRY.findall(text):
        yield Command(["gateway", *json.loads(arguments)], is_whole=True)
    for line in set(_INLINE.findall(_FENCE.sub("", text))) - _TEXTS:
        yield from (Command(words, is_whole=False) for words in _split(line))


def _lines(block: str) -> Iterator[str]:
    """The lines that are typed: those behind a prompt where the block has one."""
    lines = [line.strip() for line in block.replace("\\\n", " ").splitlines()]
    prompted = [line[2:] for line in lines if line.startswith("$ ")]
    yield from prompted or lines


def _split(line: str) -> Iterator[list[str]]:
    """The commands of a line: between its operators, and nested in `$(…)`."""
    for nested in _NESTED.findall(line):
        yield from _split(nested)
    lexer = shlex.shlex(_NESTED.sub("NESTED", re.sub(r"\b[12]>", ">", line)), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a line of output, or one whose quotes span lines
        return
    command: list[str] = []
    for before, word in zip(["", *words], [*words, ";"], strict=False):
        if word in _ENDS:
            yield command
            command = []
        elif word not in _REDIRECTIONS and before not in _REDIRECTIONS:
            command.append(word)


def fault_of(command: Command, folder: Path) -> str | None:
    """The refusal of a command; None if it is accepted, or is none of ours."""
    words = command.words
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words = words[1:]
    match [Path(word).name if number == 0 else word for number, word in enumerate(words)]:
        case ["gateway", *arguments] | ["python", "-m", "gateway", *arguments]:
            return _gateway_fault(arguments, folder, is_whole=command.is_whole)
        case ["python", "-m", module, *_] if (ROOT / module.partition(".")[0]).is_dir():
            place = ROOT / module.replace(".", "/")
            return None if place.with_suffix(".py").exists() or place.is_dir() else f"no module {module}"
        case ["curl", *rest]:
            return _request_fault(rest)
        case ["make", target, *_] if not target.startswith("-") and "=" not in target:
            return None if target in _targets() else f"no target {target}"
        case _:
            return None


def _gateway_fault(arguments: list[str], folder: Path, *, is_whole: bool) -> str | None:
    """The refusal of the command line for these arguments; nothing runs. A file that they name is made."""
    try:
        with chdir(folder):
            _parse(arguments)
    except (click.MissingParameter, click.BadOptionUsage, click.exceptions.NoArgsIsHelpError) as error:
        return error.format_message() if is_whole else None
    except click.exceptions.Exit:  # of `--help`
        return None
    except click.UsageError as error:
        named = re.search(r"'([^'/]+)'(?: does not exist|: No such file)", error.message)
        if named is None or (folder / named[1]).exists():
            return error.format_message()
        (folder / named[1]).touch()
        return _gateway_fault(arguments, folder, is_whole=is_whole)
    return None


def _parse(words: list[str]) -> None:
    """Parse the arguments of the gateway as click does; the parser changes the list that it is given.

    Raises:
        click.UsageError: a command, an option or a value is refused.
    """
    command: click.Command | None = gateway
    context = gateway.make_context("gateway", list(words))
    while isinstance(command, click.Group):
        _, rest, _ = command.make_parser(context).parse_args(list(words))
        name, command, words = command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, list(words), parent=context)
    context.close()  # files among its arguments are open


def _request_fault(words: list[str]) -> str | None:
    """Parts of a request by curl for which the admin API has no route."""
    sent = re.search(rf"{ADMIN}(/[^\s?]*)", " ".join(words))
    if sent is None:
        return None
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    patterns = [re.sub(r"\{\w+\}", "[^/]+", one.path) for one in ENDPOINTS if one.method == method]
    return None if any(re.fullmatch(pattern, sent[1]) for pattern in patterns) else f"no route {method} {sent[1]}"


def _targets() -> set[str]:
    return set(re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", _PAGES)
def test_every_command_line_of_a_page_is_accepted(page: str, tmp_path: Path) -> None:
    """Ours: a reader is shown no command that the gateway, make or Python refuses (CLI-1)."""
    found = {" ".join(one.words): fault_of(one, tmp_path) for one in commands_of((ROOT / page).read_text())}

    assert {words: fault for words, fault in found.items() if fault is not None} == {}


_READS = {
    *("check", "deliveries", "deleted", "delivery", "diff", "doctor", "explain", "export", "keys", "list", "overrides"),
    *("primitives", "report", "show", "status", "tail", "validate", "verify", "versions", "watch"),
}
"""The last words of commands that change nothing."""
_SHARED = {"yes"}


def _leaves(command: click.Command, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command below a group, with its words."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from _leaves(below, *words, name)


def _examples(command: click.Command) -> list[str]:
    """The lines of the examples in a command's help; a line that ends with a backslash continues."""
    text = f"{command.help}\n{command.epilog or ''}".replace("\\\n", " ")
    _, mark, lines = re.sub(r"Examples:", "Example:", text).partition("Example:\n")
    return [line.strip() for line in lines.splitlines() if line.strip()] if mark else []


def _needs_example(words: tuple[str, ...], command: click.Command) -> bool:
    """True for a command that writes and takes more than a name: the usage alone shows how to type all others."""
    if words[-1] in _READS:
        return False
    own = [one for one in command.params if one.expose_value and one.name not in _SHARED]
    return len(own) > 1 or any(one.name in {"file", "spec"} for one in own)


def test_every_command_that_writes_has_examples_that_are_accepted(tmp_path: Path) -> None:
    """Ours: help shows how a change is typed, and its examples can be typed unchanged (CLI-1)."""
    found = {words: (command, _examples(command)) for words, command in _leaves(gateway)}
    faults = {
        (words, line): fault_of(Command(split, is_whole=True), tmp_path)
        for words, (_, lines) in found.items()
        for line in lines
        for split in _split(line)
    }
    typed = {words: [one for one in lines if one.startswith("gateway ")] for words, (_, lines) in found.items()}
    others = {words for words, lines in typed.items() if any(" ".join(words[-2:]) not in line for line in lines)}
    without = {" ".join(words) for words, (one, lines) in found.items() if _needs_example(words, one) and not lines}

    assert without == set()
    assert {place: fault for place, fault in faults.items() if fault is not None} == {}
    assert len(faults) > 60, "the examples of help are not found"
    assert others <= {("key", "rotate"), ("completion",), ("tool", "put")}  # `put` is a former name of `set`
