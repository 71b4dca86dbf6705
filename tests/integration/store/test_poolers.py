"""pgbouncer in front of PostgreSQL: in transaction mode the gateway refuses to start, in session mode it works."""

import asyncio
import contextlib
import os
import pwd
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import anyio
import pytest

from gateway.domain.identifiers import TenantId
from gateway.errors import BrokenSetting, DatabaseUnavailable
from gateway.store.engine import Store
from tests.deploy.programs import find_program
from tests.deploy.sockets import forwarded, free_port

_IGNORED = "extra_float_digits,search_path,role,jit,statement_timeout,idle_in_transaction_session_timeout"


@asynccontextmanager
async def _pooled(url: str, folder: Path, mode: str, *, ignored: str = _IGNORED) -> AsyncGenerator[str]:
    """The same database behind a pooler."""
    async with forwarded(url) as reached:
        parts, port = urlsplit(reached), free_port()
        database = parts.path[1:]
        settings, log = folder / "pgbouncer.ini", folder / "log"
        settings.write_text(
            f"[databases]\n{database} = host={parts.hostname} port={parts.port} dbname={database} user=gateway_app\n"
            f"[pgbouncer]\npool_mode = {mode}\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = any\nignore_startup_parameters = {ignored}\n"
        )
        with settings.open() as opened, log.open("w") as errors:
            child = _start(opened.fileno(), errors)
        try:
            with anyio.fail_after(20):
                while not await _accepts(port):
                    assert child.poll() is None, log.read_text()
                    await anyio.sleep(0.02)
            yield f"postgresql://gateway_app@127.0.0.1:{port}/{database}"
        finally:
            child.terminate()
            child.wait()


def _start(settings: int, errors: IO[str]) -> "subprocess.Popen[bytes]":
    """Start it, not as root, which it refuses; the file of its settings is open for it."""
    program = find_program("pgbouncer", "pgbouncer", with_libraries=True)
    libraries = next((program.parents[2] / "usr" / "lib").glob("*-linux-gnu"))
    return subprocess.Popen(
        [program, f"/proc/self/fd/{settings}"],
        env={"LD_LIBRARY_PATH": str(libraries)},
        stdout=subprocess.DEVNULL,
        stderr=errors,
        pass_fds=(settings,),
        user=None if os.getuid() else pwd.getpwnam("nobody").pw_uid,
    )


async def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        return True
    return False


async def test_a_pooler_that_moves_sessions_is_refused(database_url: str, tmp_path: Path) -> None:
    """Ours: a pooler that would fail with the second request ends the start, and the reason names its mode (SCL-2)."""
    async with _pooled(database_url, tmp_path, "transaction") as url, Store(url) as store:
        with pytest.raises(BrokenSetting, match="transaction mode"):
            await store.check_sessions()
    async with _pooled(database_url, tmp_path, "statement") as url, Store(url) as store:
        with pytest.raises(DatabaseUnavailable) as caught:
            await store.check_sessions()
    assert "statement pooling mode" in caught.value.cause


async def test_a_pooler_in_session_mode_is_no_hindrance(database_url: str, tmp_path: Path) -> None:
    """Ours: it announces another process than the one that works, and keeps each session (SCL-2)."""
    async with _pooled(database_url, tmp_path, "session") as url, Store(url) as store:
        await store.check_sessions()
        await store.check()
        async with store.transaction(TenantId("ten_a")):
            pass


async def test_the_words_of_a_pooler_reach_the_operator_only(database_url: str, tmp_path: Path) -> None:
    """Ours: the operator reads which parameter it refuses; the message for callers has none of it (ISO-6)."""
    async with _pooled(database_url, tmp_path, "session", ignored="") as url, Store(url) as store:
        with pytest.raises(DatabaseUnavailable) as caught:
            await store.check()

    assert "unsupported startup parameter" in caught.value.cause
    assert caught.value.message == "PostgreSQL cannot be reached."
