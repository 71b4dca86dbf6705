"""The command line as a person runs it: a process of its own, against a running gateway."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.commands import Ended, run_gateway
from tests.support.documents import pets
from tests.support.gateway import OPERATOR_KEY, RunningGateway, running_gateway
from tests.support.upstream import RecordingUpstream, recording_upstream

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """A person at a prompt, with some variables set."""

    folder: Path
    variables: Mapping[str, str]

    async def run(self, *arguments: str, given: str = "", **variables: str) -> Ended:
        """Run `gateway` to its end; an empty variable is one that is not set."""
        wanted = {**self.variables, **variables}
        ended = await run_gateway(
            arguments,
            folder=self.folder,
            variables=environment(**{name: value for name, value in wanted.items() if value}),
            given=given.encode(),
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
def serving(*arguments: str, folder: Path, **variables: str) -> Generator[subprocess.Popen[str]]:
    """A command that serves until it is told to stop, which must go well."""
    child = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    except BaseException:
        child.kill()
        _, err = child.communicate(timeout=30)
        sys.stderr.write(err)
        raise
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert "Traceback" not in err, err


@pytest.fixture
async def upstream() -> AsyncGenerator[RecordingUpstream]:
    """An upstream that writes down what it is asked."""
    async with recording_upstream() as started:
        yield started


@pytest.fixture
async def gateway(database_url: str, redis_url: str, upstream: RecordingUpstream) -> AsyncGenerator[RunningGateway]:
    """A gateway that may call the recording upstream."""
    async with running_gateway(database_url, redis_url, egress_allow=[upstream.authority]) as started:
        yield started


@pytest.fixture
def terminal(gateway: RunningGateway, tmp_path: Path) -> Terminal:
    """The operator's prompt."""
    variables = {"GATEWAY_URL": gateway.url, "GATEWAY_OPERATOR_KEY": OPERATOR_KEY, "GATEWAY_TENANT": "acme"}
    return Terminal(folder=tmp_path, variables=variables)


@pytest.fixture
async def pets_file(tmp_path: Path, upstream: RecordingUpstream) -> Path:
    """The pets document on disk."""
    path = tmp_path / "pets.json"
    path.write_text(json.dumps(pets(upstream.url)))
    return path
