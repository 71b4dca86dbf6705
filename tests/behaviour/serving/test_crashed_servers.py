"""A gateway whose embedded servers die under it."""

import contextlib
import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import httpx

from tests.support.forks import Forked
from tests.support.gateway import OPERATOR_KEY
from tests.support.serving import http_client


class Gateway:
    """`gateway serve` with embedded servers."""

    def __init__(self, child: Forked, data_dir: Path, log: Path, http: httpx.AsyncClient) -> None:
        self.child = child
        self.log = log
        self.http = http
        self._servers = data_dir / "servers"

    def kill(self, name: str) -> int:
        """End one of the servers as a crash does; which process it was."""
        pid = self._pid(name)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        return pid

    def break_postgres(self) -> None:
        """Let PostgreSQL not start another time."""
        (self._servers / "postgres" / "postgresql.conf").write_text("no_such_setting = 1\n")

    async def until_replaced(self, name: str, killed: int) -> None:
        """Wait until another process is the server, and the gateway ready."""
        with anyio.fail_after(180):
            while self._pid(name) in {None, killed}:  # noqa: ASYNC110  # another process
                await anyio.sleep(0.02)
            while (await self.http.get("/readyz")).status_code != 200:  # noqa: ASYNC110  # another process
                await anyio.sleep(0.02)

    def _pid(self, name: str) -> int | None:
        try:
            return int((self._servers / name).read_text().split()[0])
        except (OSError, IndexError):
            return None


@asynccontextmanager
async def _serving(folder: Path) -> AsyncGenerator[Gateway]:
    data_dir, log = folder / "data", folder / "log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    environment |= {"GATEWAY_OPERATOR_KEY": OPERATOR_KEY, "GATEWAY_LOG_FORMAT": "json"}
    arguments = ["serve", "--json", "--port", "0", "--data-dir", str(data_dir)]
    child = Forked(arguments, environment, errors=log)
    try:
        with child.stdout or contextlib.nullcontext():
            reported = await anyio.to_thread.run_sync(_read_url, child)
        bearer = {"authorization": f"Bearer {OPERATOR_KEY}"}
        async with http_client(base_url=reported, headers=bearer, timeout=30) as http:
            yield Gateway(child, data_dir, log, http)
    finally:
        child.kill()
        child.wait()


def _read_url(child: Forked) -> str:
    assert child.stdout is not None
    for line in child.stdout:
        if b'"url"' in line:
            return line.split(b'"')[3].decode()
    raise AssertionError("the gateway did not start")


async def test_embedded_servers_that_crash_are_back_with_all_they_had(tmp_path: Path) -> None:
    """Ours: away for a moment, then everything as it was (SRV-4)."""
    async with _serving(tmp_path) as gateway:
        (await gateway.http.post("/admin/v1/tenants", json={"slug": "acme"})).raise_for_status()
        for name in ("postgres/postmaster.pid", "redis.pid"):
            await gateway.until_replaced(name, gateway.kill(name))
            assert (await gateway.http.get("/admin/v1/tenants/acme")).status_code == 200
        gateway.child.terminate()
        with anyio.fail_after(90):
            assert await anyio.to_thread.run_sync(gateway.child.wait) == 0


async def test_an_embedded_server_that_stays_down_ends_the_gateway_with_its_reason(tmp_path: Path) -> None:
    """Ours: the last line repeats PostgreSQL's message, and the exit code is not 0 (SRV-3)."""
    async with _serving(tmp_path) as gateway:
        gateway.break_postgres()
        gateway.kill("postgres/postmaster.pid")
        with anyio.fail_after(180):
            assert await anyio.to_thread.run_sync(gateway.child.wait) != 0
        last = gateway.log.read_text().splitlines()[-1]

    assert json.loads(last)["reason"].startswith("postgres ended")
    assert "no_such_setting" in last
