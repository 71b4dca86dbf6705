"""Holds the images of a release to digests: `python -m tests.images`, before a release is made.

Reads `deploy/images.env`, the only place where images are pinned. Each must have a tag and a digest. With `--ask`, the
digest must also be the one that the registry has for the tag now; without it, that check prints NOT RUN.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

PINS = Path(__file__).parents[1] / "deploy" / "images.env"
_PINNED = re.compile(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}")
_DIGEST = re.compile(r"^Digest:\s+(sha256:[0-9a-f]{64})$", re.MULTILINE)
_ASK_S = 60

Ask = Callable[[str], str | None]


def read_pins(path: Path = PINS) -> Mapping[str, str]:
    """The image of each variable."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def complaints(pins: Mapping[str, str], ask: Ask | None) -> Iterator[str]:
    """Faults of the pins; `ask` returns the current digest of a tag at its registry."""
    for name, pin in pins.items():
        tag, _, digest = pin.partition("@")
        if not _PINNED.fullmatch(pin):
            found = None if ask is None else ask(tag)
            hint = "" if found is None else f"; today it is {tag}@{found}"
            yield f"{name}: {pin} has no digest{hint}"
        elif ask is not None and (found := ask(tag)) != digest:
            yield f"{name}: the registry has {found or 'no digest'} for {tag}, not {digest}"


def ask_registry(tag: str) -> str | None:
    """The digest of a tag, asked with the container engine's own client; None when it does not answer."""
    command = ["docker", "buildx", "imagetools", "inspect", tag]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_ASK_S)
    except subprocess.TimeoutExpired:
        return None
    found = _DIGEST.search(ended.stdout)
    return found[1] if found else None


def main() -> int:
    """Print what is wrong; 1 when anything is."""
    can_ask = "--ask" in sys.argv and shutil.which("docker") is not None
    if not can_ask:
        print("NOT RUN: digests were not compared with a registry: that needs --ask, docker and a network")
    found = list(complaints(read_pins(), ask_registry if can_ask else None))
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
