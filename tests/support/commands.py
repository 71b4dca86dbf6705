"""Commands of the gateway that run to their end.

One that goes on until it is stopped is started as a person starts it, by the test that is about it.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from tests.support.forks import Forked

_PATIENCE_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that is over."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> object:
        """Its answer with --json."""
        loaded: object = json.loads(self.out)
        return loaded


async def run_gateway(
    arguments: Sequence[str],
    *,
    folder: Path,
    variables: Mapping[str, str],
    given: bytes = b"",
    typed: str | None = None,
) -> Ended:
    """Run `python -m gateway` with these arguments in this folder, with these variables and nothing else.

    What is typed comes from a terminal, which then shows the errors; the output is a file.
    """
    with tempfile.TemporaryDirectory(prefix="gwc-") as scratch, ExitStack() as stack:
        source, output, errors = (Path(scratch) / name for name in ("in", "out", "err"))
        source.write_bytes(given)
        screen = None
        if typed is not None:
            screen = _Screen()
            stack.callback(screen.close)
            screen.type(typed)
            source = errors = screen.path

        def start() -> Forked:
            return Forked(arguments, variables, folder=folder, given=source, output=output, errors=errors)

        child = await anyio.to_thread.run_sync(start)
        try:
            with anyio.fail_after(_PATIENCE_S):
                code = await anyio.to_thread.run_sync(child.wait, abandon_on_cancel=True)
        finally:
            child.kill()
        return Ended(code=code, out=output.read_text(), err=errors.read_text() if screen is None else screen.read())


class _Screen:
    """A pseudo-terminal of a command that shows less than the kernel buffers."""

    def __init__(self) -> None:
        self._ours, self._theirs = os.openpty()
        self.path = Path(os.ttyname(self._theirs))

    def type(self, text: str) -> None:
        """Type lines ahead."""
        os.write(self._ours, text.encode())

    def read(self) -> str:
        """Its output, with this input."""
        os.set_blocking(self._ours, False)
        shown = b""
        while True:
            try:
                part = os.read(self._ours, 2**16)
            except BlockingIOError:
                return shown.decode().replace("\r\n", "\n")
            shown += part

    def close(self) -> None:
        """Let it go."""
        os.close(self._ours)
        os.close(self._theirs)
