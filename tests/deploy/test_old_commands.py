"""Clients of two releases at servers of two releases: the command line of commit 79130e09, and that of this tree.

Both servers use one database, which this tree has migrated. Each command line of `tests/golden/commands.py` runs three
times: the former client at the former server, then each client at the server of the other release.
"""

import json
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
import pytest

from gateway.store.database.migrations import migrate
from tests.deploy.old_release import RELEASES, OldRelease, unpack_old_release
from tests.deploy.topology import clean_environment
from tests.golden.commands import steps, write_files
from tests.support.gateway import OPERATOR_KEY, SECRET_KEY
from tests.support.issuer import new_issuer
from tests.support.replicas import Replica, redis_users
from tests.support.servers import TestServers
from tests.support.upstream import recording_upstream

pytestmark = pytest.mark.long

_PATIENCE_S = 120
_VARYING = frozenset(
    {"id", "created_at", "updated_at", "slug", "key", "secret", "path", "revision", "subject", "deleted", "report"}
)
"""Members whose values differ between two runs, or, as the report of an import, with the tree."""
_UPGRADING = Path(__file__).parents[2] / "docs" / "upgrading.md"
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A command line of one release."""

    python: str
    folder: Path
    environment: Mapping[str, str]

    async def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        command = [self.python, "-m", "gateway", *arguments, "--json"]
        run = partial(
            subprocess.run,
            command,
            cwd=self.folder,
            env=dict(self.environment),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=False,
        )
        return await anyio.to_thread.run_sync(run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """A client and a server of each release, over one database."""

    old_client: Client
    new_client: Client
    old_url: str
    new_url: str
    issuer: str


@dataclass(slots=True)
class Run:
    """The results of all steps of one client at one server."""

    shown: dict[str, object] = field(default_factory=dict[str, object])
    refusals: dict[str, str] = field(default_factory=dict[str, str])
    """The messages of failed commands, but for commands that docs/upgrading.md replaces."""


@pytest.fixture
async def both(servers: TestServers, tmp_path: Path) -> AsyncGenerator[Both]:
    """The servers run for one test."""
    release = unpack_old_release(tmp_path, RELEASES["0042"])

    def write(name: str, text: str) -> None:
        (tmp_path / name).write_text(text)

    write_files(write)
    redis_url = servers.empty_redis()
    with servers.empty_database() as database:
        release.migrate(database.owner_url, database.app_url, SECRET_KEY)
        await migrate(database.owner_url)
        async with recording_upstream() as upstream, AsyncExitStack() as stack:
            environment = clean_environment() | {
                "GATEWAY_DATABASE_URL": database.app_url,
                "GATEWAY_SECRET_KEYS": SECRET_KEY,
                "GATEWAY_OPERATOR_KEY": OPERATOR_KEY,
                "GATEWAY_EGRESS_ALLOW": upstream.authority,
                "GATEWAY_LOG_FORMAT": "json",
            }
            old = Replica("old", tmp_path, environment | release.environment, redis_url, python=str(release.python))
            new = Replica("new", tmp_path, environment, redis_url)
            stack.enter_context(redis_users(redis_url, [old.redis_user, new.redis_user]))
            for replica in (old, new):
                stack.push_async_callback(replica.close)
                await replica.start()
            yield Both(
                old_client=_client(release, tmp_path),
                new_client=_client(None, tmp_path),
                old_url=old.gateway.url,
                new_url=new.gateway.url,
                issuer=new_issuer(upstream).url,
            )


async def test_clients_of_each_release_work_at_servers_of_the_other(both: Both) -> None:
    """Ours: a command line works before and after the upgrade of its server; the page Upgrading has the exceptions."""
    before, forward, backward = Run(), Run(), Run()
    async with anyio.create_task_group() as group:
        group.start_soon(_run_all, both.old_client, both.old_url, "before", both.issuer, before)
        group.start_soon(_run_all, both.old_client, both.new_url, "forward", both.issuer, forward)
        group.start_soon(_run_all, both.new_client, both.old_url, "backward", both.issuer, backward)

    assert [run.refusals for run in (before, forward, backward)] == [{}, {}, {}]
    named = {word for code in _CODE.findall(_UPGRADING.read_text()) for word in re.findall(r"\w+", code)}
    moved = {name: lost for name in before.shown if (lost := _lost(before.shown[name], forward.shown[name]) - named)}
    assert moved == {}, "the new server shows them elsewhere, or otherwise, and docs/upgrading.md does not name them"


def _client(release: OldRelease | None, folder: Path) -> Client:
    own = {} if release is None else release.environment
    python = sys.executable if release is None else str(release.python)
    root = {} if release is not None else {"PYTHONPATH": str(Path(__file__).parents[2])}
    environment = {**clean_environment(), "GATEWAY_OPERATOR_KEY": OPERATOR_KEY, **own, **root}
    return Client(python=python, folder=folder, environment=environment)


async def _run_all(client: Client, url: str, tenant: str, issuer: str, done: Run) -> None:
    """Run all command lines of one tenant, and keep their results."""
    ids = dict[str, str]()
    for step in steps(issuer):
        line = [_filled(part, {"tenant": tenant, "id": ids.get(step.kind, "")}) for part in step.line]
        own = [] if step.kind == "tenant" or "{tenant}" in step.line else ["--tenant", tenant]
        ended = await client.run(*line, "--url", url, *own)
        if ended.returncode != 0 and f"| `{' '.join(step.line[:2])} " not in _UPGRADING.read_text():
            done.refusals[step.name] = ended.stderr.strip()
        if ended.returncode == 0 and ended.stdout.strip():
            done.shown[step.name] = shown = json.loads(ended.stdout)
            if step.verb == "create":
                ids[step.kind] = _id_of(shown)


def _filled(part: str, values: Mapping[str, str]) -> str:
    """The part with the values in it; braces that are doubled stay as single ones."""
    return part.format(**values) if re.search(r"[{}]", part) else part


def _id_of(shown: object) -> str:
    found: object = shown
    while isinstance(found, list) and found:
        found = cast("list[object]", found)[0]
    return str(cast("dict[str, Any]", found).get("id", "")) if isinstance(found, dict) else ""


def _lost(before: object, after: object) -> frozenset[str]:
    """The first members on the paths of values that the new server shows elsewhere or otherwise."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    members = {path: re.findall(r"\w+", path.lstrip("[]0123456789.")) for path in old}
    return frozenset(
        members[path][0] if members[path] else path
        for path, value in old.items()
        if (path not in new or new[path] != value) and not _VARYING & {*members[path]}
    ) | frozenset(path for path in old.keys() - new.keys() if path in _VARYING)


def _leaves(shown: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(shown, dict) and shown:
        for name, value in cast("dict[str, object]", shown).items():
            yield from _leaves(value, f"{path}.{name}" if path else name)
    elif isinstance(shown, list) and shown:
        for place, value in enumerate(cast("list[object]", shown)):
            yield from _leaves(value, f"{path}[{place}]")
    else:
        yield path, shown
