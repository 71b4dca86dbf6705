"""The Dockerfile as instructions, stage by stage, and what `.dockerignore` lets into its context."""

import fnmatch
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of it, continuations joined."""

    word: str
    text: str


def read_stages(path: Path = ROOT / "Dockerfile") -> list[list[Instruction]]:
    """Each stage from its FROM on, with the defaults of the arguments before the first."""
    stages: list[list[Instruction]] = []
    defaults: dict[str, str] = {}
    for instruction in _instructions(path.read_text()):
        if instruction.word == "FROM":
            stages.append([])
        if not stages:
            name, _, default = instruction.text.partition("=")
            defaults[name] = default
            continue
        text = re.sub(r"\$\{(\w+)\}", lambda found: defaults.get(found[1], found[0]), instruction.text)
        stages[-1].append(Instruction(instruction.word, text))
    return stages


def of(stage: list[Instruction], word: str) -> list[str]:
    """The texts of all instructions of one kind."""
    return [instruction.text for instruction in stage if instruction.word == word]


def image_variables() -> dict[str, str]:
    """Settings of the image for the gateway, for any account."""
    reported = dict(pair.split("=", 1) for text in of(read_stages()[-1], "ENV") for pair in shlex.split(text))
    return {name: value for name, value in reported.items() if name.startswith("GATEWAY_")}


def copy_context(folder: Path) -> None:
    """Files that an engine would be sent."""
    for path in sorted(ROOT.rglob("*")):
        shown = path.relative_to(ROOT)
        if path.is_file() and shown.parts[0] not in _NEVER and is_sent(shown):
            target = folder / shown
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def is_sent(path: Path) -> bool:
    """True if the last rule of `.dockerignore` that fits lets the path in."""
    is_in = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        rule = line.strip()
        if not rule or rule.startswith("#"):
            continue
        if _fits(path, rule.removeprefix("!")):
            is_in = rule.startswith("!")
    return is_in


_NEVER = {".git", ".venv", ".benchmarks", ".gateway"}
"""Large, and held to be shut out by a test of their own."""


def _fits(path: Path, rule: str) -> bool:
    """True if the rule names the path or a folder above it."""
    depths = range(1, len(path.parts) + 1)
    if rule.startswith("**/"):
        return any(fnmatch.fnmatchcase(part, rule[3:]) for part in path.parts)
    wanted = rule.count("/") + 1
    return any(depth == wanted and fnmatch.fnmatchcase("/".join(path.parts[:depth]), rule) for depth in depths)


def _instructions(text: str) -> Iterator[Instruction]:
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", "", lines).splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield Instruction(word, rest.strip())
