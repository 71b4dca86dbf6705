"""The command line as a person runs it: a process of its own, against a running gateway."""

import io
import json
import os
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from tests.support.commands import Ended, run_gateway
from tests.support.documents import pets
from tests.support.forks import Forked
from tests.support.gateway import OPERATOR_KEY, RunningGateway
from tests.support.stand import database, gateway, own_stand, redis_url, stand, upstream
from tests.support.stand import package_stand as common_stand
from tests.support.upstream import RecordingUpstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """A person at a prompt, with some variables set."""

    gateway: RunningGateway
    folder: Path
    variables: Mapping[str, str]

    async def create_tenant(self) -> None:
        """The tenant of the variables, for tests of other commands."""
        await self.gateway.create_tenant(self.variables["GATEWAY_TENANT"])

    async def run(self, *arguments: str, given: str = "", typed: str | None = None, **variables: str) -> Ended:
        """Run `gateway` to its end, at a terminal if something is typed; an empty variable is one that is not set."""
        wanted = {**self.variables, **variables}
        ended = await run_gateway(
            arguments,
            folder=self.folder,
            variables=environment(**{name: value for name, value in wanted.items() if value}),
            given=given.encode(),
            typed=typed,
        )
        assert "Traceback" not in ended.err, ended.err
        return ended

    async def do(self, *arguments: str, given: str = "", **variables: str) -> Ended:
        """The same, and it must go well."""
        ended = await self.run(*arguments, given=given, **variables)
        assert ended.code == 0, ended.err
        return ended


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without any setting of a gateway but these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    return {**kept, "PYTHONPATH": str(ROOT), **variables}


@contextmanager
def serving(*arguments: str, folder: Path, module: str = "gateway") -> Generator[IO[str]]:
    """The output of a command that serves until SIGTERM, which must end with code 0."""
    with tempfile.TemporaryDirectory(prefix="gwc-") as scratch:
        errors = Path(scratch) / "err"
        child = Forked(arguments, environment(), module=module, folder=folder, errors=errors)
        assert child.stdout is not None
        try:
            with io.TextIOWrapper(child.stdout) as printed:
                yield printed
                child.terminate()
                code = child.wait(60)
        except BaseException:
            child.kill()
            sys.stderr.write(errors.read_text())
            raise
        assert code == 0, errors.read_text()
        assert "Traceback" not in errors.read_text()


@pytest.fixture
def terminal(gateway: RunningGateway, tmp_path: Path) -> Terminal:
    """The operator's prompt."""
    variables = {"GATEWAY_URL": gateway.url, "GATEWAY_OPERATOR_KEY": OPERATOR_KEY, "GATEWAY_TENANT": "acme"}
    return Terminal(gateway=gateway, folder=tmp_path, variables=variables)


@pytest.fixture
async def pets_file(tmp_path: Path, upstream: RecordingUpstream) -> Path:
    """The pets document on disk."""
    path = tmp_path / "pets.json"
    path.write_text(json.dumps(pets(upstream.url)))
    return path
