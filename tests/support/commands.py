"""Commands of the gateway that run to their end.

One that goes on until it is stopped is started as a person starts it, by the test that is about it.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
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
        """What it answered with --json."""
        loaded: object = json.loads(self.out)
        return loaded


async def run_gateway(
    arguments: Sequence[str], *, folder: Path, variables: Mapping[str, str], given: bytes = b""
) -> Ended:
    """What `python -m gateway` with these arguments does in this folder, with these variables and nothing else."""
    with tempfile.TemporaryDirectory(prefix="gwc-") as scratch:
        source, output, errors = (Path(scratch) / name for name in ("in", "out", "err"))
        source.write_bytes(given)

        def start() -> Forked:
            return Forked(arguments, variables, folder=folder, given=source, output=output, errors=errors)

        child = await anyio.to_thread.run_sync(start)
        try:
            with anyio.fail_after(_PATIENCE_S):
                code = await anyio.to_thread.run_sync(child.wait, abandon_on_cancel=True)
        finally:
            child.kill()
        return Ended(code=code, out=output.read_text(), err=errors.read_text())
