"""The commands without commands below them, with the examples in their help."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from gateway.cli.main import gateway

_EXAMPLES = re.compile(r"Examples?:\n(.*?)(?:\n\n|\Z)", re.DOTALL)
_SUBSTITUTED = re.compile(r"\$\((gateway [^)]*)\)")
_FILE = re.compile(r"[\w.-]+\.(?:json|yaml|plan|log|zip|jsonl)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A command without commands below it, and its words."""

    path: tuple[str, ...]
    command: click.Command

    @property
    def lines(self) -> list[str]:
        """The command lines of its examples; a line that ends with a backslash goes on."""
        texts = [self.command.help or "", self.command.epilog if isinstance(self.command.epilog, str) else ""]
        found = [match for text in texts for match in _EXAMPLES.findall(text.replace("\b\n", ""))]
        joined = "\n".join(found).replace("\\\n", " ")
        return [" ".join(line.split()) for line in joined.splitlines() if line.strip()]


def _leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[Leaf]:
    if not isinstance(command, click.Group):
        yield Leaf(path=path, command=command)
        return
    for name in command.list_commands(click.Context(command)):
        below = command.get_command(click.Context(command), name)
        assert below is not None
        yield from _leaves(below, (*path, name))


LEAVES = list(_leaves(gateway))


def calls_in(line: str) -> list[list[str]]:
    """The words of each call of the gateway in a line of a shell."""
    inner = _SUBSTITUTED.findall(line)
    calls = inner or [part for part in line.split(" | ") if re.search(r"(?:^|\s)gateway\s", part)]
    split = [shlex.split(re.split(" [<>] ", call)[0], comments=True) for call in calls]
    return [words[words.index("gateway") + 1 :] for words in split]


def parse(words: Sequence[str]) -> tuple[str, ...]:
    """Parse the words as click does for a run; return the path of the command."""
    path: list[str] = []
    context = gateway.make_context("gateway", list(words))
    while isinstance(context.command, click.Group):
        rest = [*context._protected_args, *context.args]  # pyright: ignore[reportPrivateUsage]  # click's own way
        name, command, arguments = context.command.resolve_command(context, rest)
        assert command is not None
        assert name is not None
        path.append(name)
        context = command.make_context(name, list(arguments), parent=context)
    context.close()  # click opens the files of arguments
    return tuple(path)


def write_files(folder: Path) -> None:
    """Write the files that examples name."""
    for leaf in LEAVES:
        for line in leaf.lines:
            for name in _FILE.findall(line):
                (folder / name).write_text("{}")
