"""Embedded PostgreSQL: creates the data directory once, runs the server, and creates roles and database."""

import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol, cast

import anyio
import asyncpg

from gateway.domain.fairness.thread_kinds import OWN_PROGRAMS
from gateway.domain.fairness.threads import run_in_thread
from gateway.embedded.binaries import postgres_programs
from gateway.embedded.child import Child
from gateway.embedded.limits import CONNECT_TIMEOUT_S
from gateway.embedded.stale_processes import end_stale_processes
from gateway.embedded.state_directory import StateDirectory, make_folder
from gateway.embedded.supervisor import Watched
from gateway.errors import EmbeddedServerFailed

OWNER = "gateway_owner"
APP = "gateway_app"
DEFINER = "gateway_definer"
DATABASE = "gateway"

_STOP_SIGNALS = (signal.SIGINT, signal.SIGQUIT)
"""SIGINT: fast shutdown, which disconnects clients and writes all data. SIGQUIT: immediate; the next start recovers."""

_MAJOR = "18"
_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "shared_buffers": "32MB",
    "max_connections": "100",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
}


@asynccontextmanager
async def running_postgres(folders: StateDirectory) -> AsyncGenerator[Watched]:
    """Run PostgreSQL with the gateway's roles and database for as long as the block runs.

    Raises:
        EmbeddedServerFailed: PostgreSQL is not installed or did not start, its data was written by another major
            version, or a stale server cannot be stopped.
    """
    place = folders.root.parent / "programs"
    programs = await run_in_thread(OWN_PROGRAMS, "", postgres_programs, folders.account, place)
    if not folders.postgres.exists():
        await _create(programs, folders)
    _check_version(folders.postgres)
    with _path_for_account(folders.postgres, folders) as data, _path_for_account(folders.sockets, folders) as sockets:
        command: list[str | Path] = [programs / "postgres", "-D", data.path, "-k", sockets.path]
        command += [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        server = _child("postgres", command, folders)
        server.inherited = (*data.descriptors, *sockets.descriptors)

        async def start() -> None:
            await _stop_stale_server(folders.postgres)  # also child processes of a server that was killed
            server.start()
            await _prepare(server, folders.sockets)

        try:
            await start()
            yield Watched(child=server, revive=start)
        finally:
            await server.stop()


async def _create(programs: Path, folders: StateDirectory) -> None:
    """Create the data directory under another name and rename it when it is complete."""
    incomplete = folders.root / "postgres.new"
    if incomplete.exists():
        await _stop_stale_server(incomplete)
        await run_in_thread(OWN_PROGRAMS, "", shutil.rmtree, incomplete)
    make_folder(incomplete, folders.account)
    with _path_for_account(incomplete, folders) as data:
        command: list[str | Path] = [programs / "initdb", "-D", data.path, "-U", "postgres", "--auth=trust"]
        command += ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        child = _child("initdb", [*command, "--no-instructions"], folders)
        child.inherited = data.descriptors
        child.start()
        try:
            await child.finish()
        finally:
            await child.stop()
    incomplete.rename(folders.postgres)


async def _stop_stale_server(data: Path) -> None:
    await end_stale_processes("postgres", data, data / "postmaster.pid", _STOP_SIGNALS)


def _check_version(data: Path) -> None:
    try:
        found = (data / "PG_VERSION").read_text().strip()
    except OSError as error:
        raise EmbeddedServerFailed(f"{data} contains no readable PostgreSQL data: {error}") from error
    if found != _MAJOR:
        raise EmbeddedServerFailed(
            f"{data} was written by PostgreSQL {found}; the embedded PostgreSQL is version {_MAJOR}"
        )


class _ReachableFolder:
    """A path through which the server opens a folder, and the descriptors that the path needs."""

    def __init__(self, path: Path, *descriptors: int) -> None:
        self.path = path
        self.descriptors = descriptors


@contextmanager
def _path_for_account(folder: Path, folders: StateDirectory) -> Generator[_ReachableFolder]:
    """Yield the folder's own path; on Linux, for another account, a path through an inherited descriptor."""
    if folders.account is None or sys.platform != "linux":
        yield _ReachableFolder(folder)
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield _ReachableFolder(Path(f"/proc/self/fd/{descriptor}"), descriptor)
    finally:
        os.close(descriptor)


def _child(name: str, command: list[str | Path], folders: StateDirectory) -> Child:
    return Child(name=name, command=command, log=folders.log(name), stop_signals=_STOP_SIGNALS, account=folders.account)


class _DriverConnection(Protocol):
    """The methods of asyncpg's connection that this module uses; asyncpg has no type stubs."""

    async def execute(self, query: str) -> str: ...
    async def fetchval(self, query: str, *args: object) -> object: ...
    async def close(self) -> None: ...


class _ConnectDriver(Protocol):
    async def __call__(self, *, host: str, port: int, user: str, database: str, password: str) -> _DriverConnection: ...


_connect_driver: _ConnectDriver = cast("_ConnectDriver", asyncpg.connect)  # pyright: ignore[reportUnknownMemberType]  # no stubs


async def _prepare(server: Child, sockets: Path) -> None:
    """Wait until the server responds, then create roles and database if they are missing."""
    connection = await _connect(server, sockets)
    try:
        for role, form in ((OWNER, "login"), (APP, "login"), (DEFINER, "nologin")):
            if not await connection.fetchval("select 1 from pg_roles where rolname = $1", role):
                await connection.execute(f"create role {role} {form} nosuperuser nobypassrls noinherit")
        await connection.execute(f"grant {DEFINER}, {APP} to {OWNER} with inherit false, set true")
        if not await connection.fetchval("select 1 from pg_database where datname = $1", DATABASE):
            await connection.execute(f"create database {DATABASE} owner {OWNER}")
    except asyncpg.PostgresError as error:
        raise EmbeddedServerFailed(f"PostgreSQL cannot create the gateway's roles or database: {error}") from error
    finally:
        await connection.close()


async def _connect(server: Child, sockets: Path) -> _DriverConnection:
    with anyio.move_on_after(CONNECT_TIMEOUT_S):
        while server.is_running:
            try:
                return await _connect_driver(
                    host=str(sockets), port=5432, user="postgres", database="postgres", password=""
                )
            except (OSError, asyncpg.CannotConnectNowError):
                await anyio.sleep(0.01)
        raise server.failed()
    raise EmbeddedServerFailed(f"PostgreSQL did not respond within {CONNECT_TIMEOUT_S:.0f} seconds: {server.tail()}")
