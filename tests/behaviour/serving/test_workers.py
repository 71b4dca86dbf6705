"""Several worker processes behind one port, as an operator runs them: `gateway serve --workers 2`."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest

from gateway.app.workers.cores import usable_cores
from tests.deploy.sockets import free_port
from tests.support.documents import pets
from tests.support.gateway import ACCEPT, META, MODERN, OPERATOR_KEY, SECRET_KEY
from tests.support.servers import TestServers
from tests.support.serving import http_client
from tests.support.upstream import RecordingUpstream, recording_upstream

_OPERATOR = {"authorization": f"Bearer {OPERATOR_KEY}"}
_HELLO: dict[str, Any] = {
    "definition": {"name": "hello", "description": "Greets.", "inputSchema": {"type": "object", "properties": {}}},
    "handler": {"kind": "static", "content": [{"type": "text", "text": "hello"}]},
}
_PATIENCE_S = 120


@dataclass(slots=True)
class Machine:
    """A supervisor with two workers, and a tenant with a key."""

    program: subprocess.Popen[bytes]
    port: int
    log: Path
    upstream: RecordingUpstream
    key: str = ""

    @property
    def url(self) -> str:
        """The URL of all workers."""
        return f"http://127.0.0.1:{self.port}"

    def lines(self, event: str) -> Sequence[dict[str, Any]]:
        """The lines of the log with this event."""
        found = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in found if line["event"] == event]

    def workers(self) -> Sequence[int]:
        """The process ids of the workers that have served, in the order of their starts."""
        return [line["pid"] for line in self.lines("worker_serving")]

    async def call(self, tool: str = "hello", client: httpx.AsyncClient | None = None) -> httpx.Response:
        """Call a tool, over a connection of its own unless a client is given."""
        headers = {
            "authorization": f"Bearer {self.key}",
            "accept": ACCEPT,
            "mcp-protocol-version": MODERN,
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }
        arguments = {"id": 7} if tool == "get_pet" else {}
        params: dict[str, Any] = {"name": tool, "arguments": arguments, "_meta": META}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        if client is not None:
            return await client.post(f"{self.url}/t/acme/mcp", json=body, headers=headers)
        async with http_client(timeout=60) as own:
            return await own.post(f"{self.url}/t/acme/mcp", json=body, headers=headers)

    async def metric(self, name: str) -> float:
        """The sum of the samples of a metric on one page."""
        async with http_client(timeout=60) as own:
            page = (await own.get(f"{self.url}/metrics", headers=_OPERATOR)).raise_for_status().text
        return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if re.match(rf"{name}[ {{]", line))

    async def status(self) -> dict[str, Any]:
        """The response of `/readyz` with its reasons."""
        async with http_client(timeout=60) as own:
            shown: dict[str, Any] = (await own.get(f"{self.url}/readyz", headers=_OPERATOR)).json()
            return shown


def _start(environment: dict[str, str], port: int, log: Path) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-m", "gateway", "serve", "--workers", "2", "--port", str(port)]
    with log.open("wb") as errors:
        return subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=errors)


@asynccontextmanager
async def _machine(servers: TestServers, folder: Path, **variables: str) -> AsyncGenerator[Machine]:
    async with recording_upstream() as upstream:
        with servers.database() as database:
            environment = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")} | {
                "GATEWAY_DATABASE_URL": database.app_url,
                "GATEWAY_REDIS_URL": servers.own_redis(),
                "GATEWAY_SECRET_KEYS": SECRET_KEY,
                "GATEWAY_OPERATOR_KEY": OPERATOR_KEY,
                "GATEWAY_DATA_DIR": str(folder),
                "GATEWAY_LOG_FORMAT": "json",
                "GATEWAY_EGRESS_ALLOW": upstream.authority,
                **variables,
            }
            port = free_port()
            log = folder / "log"
            program = _start(environment, port, log)
            machine = Machine(program, port, log, upstream)
            try:
                await _until(lambda: bool(machine.lines("serving")) or program.poll() is not None)
                assert program.poll() is None, log.read_text()
                yield machine
            finally:
                program.kill()
                program.wait()
                await _until(lambda: not any(map(_is_alive, machine.workers())))


@pytest.fixture(scope="module")
async def machine(servers: TestServers, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Machine]:
    """The machine of the tests that do not end it."""
    async with _machine(servers, tmp_path_factory.mktemp("workers")) as started:
        await _prepare(started)
        yield started


async def _prepare(machine: Machine) -> None:
    async with httpx.AsyncClient(base_url=f"{machine.url}/admin/v1", headers=_OPERATOR, timeout=60) as admin:
        (await admin.post("/tenants", json={"slug": "acme"})).raise_for_status()
        (await admin.post("/tenants/acme/tools", json=_HELLO)).raise_for_status()
        document = pets(machine.upstream.url)
        (await admin.post("/tenants/acme/sources", json={"name": "pets", "document": document})).raise_for_status()
        machine.key = (await admin.post("/tenants/acme/keys", json={"name": "k", "scopes": ["mcp"]})).json()["key"]


async def _until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(_PATIENCE_S):
        while not holds():  # noqa: ASYNC110  # of another process
            await anyio.sleep(0.05)


async def _until_ready(machine: Machine) -> None:
    with anyio.fail_after(_PATIENCE_S):
        while (await machine.status())["status"] != "ready":  # noqa: ASYNC110  # of another process
            await anyio.sleep(0.05)


def _is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in {"Z", "X"}
    return False


async def test_both_workers_serve_and_the_metrics_are_sums(machine: Machine) -> None:
    """Ours: 64 connections reach both workers; each page shows the calls of all, without a further label (SRV-3)."""
    before = await machine.metric("gateway_calls_total")
    clients = [http_client(timeout=60) for _ in range(64)]
    try:
        answers = [await machine.call(client=client) for client in clients]
        shares = [_connections(pid) for pid in machine.workers()[-2:]]
    finally:
        for client in clients:
            await client.aclose()
    assert [one.json()["result"]["content"][0]["text"] for one in answers] == ["hello"] * 64
    assert min(shares) >= 8, shares  # the chance of fewer is below 1 in 10 million
    for _ in range(8):  # over connections of their own, so by either worker
        assert await machine.metric("gateway_calls_total") == before + 64
    assert await machine.metric("gateway_build") == 1
    assert (await machine.status())["workers"] == {"serving": 2, "configured": 2}


def _connections(pid: int) -> int:
    """The number of sockets that a process has open."""
    return sum(str(one.readlink()).startswith("socket:") for one in Path(f"/proc/{pid}/fd").iterdir())


async def test_a_killed_worker_is_replaced_and_no_sum_falls(machine: Machine) -> None:
    """Ours: the other worker goes on, `/readyz` is degraded meanwhile, and no counter falls (SRV-3)."""
    await machine.call()
    before = await machine.metric("gateway_calls_total")
    former = machine.workers()
    os.kill(former[-1], signal.SIGKILL)
    await _until(lambda: len(machine.workers()) > len(former))
    await _until_ready(machine)

    assert await machine.metric("gateway_calls_total") >= before
    [ended] = machine.lines("worker_ended")[-1:]
    assert ended["exit_code"] == -signal.SIGKILL
    assert {(await machine.call()).status_code for _ in range(16)} == {200}


async def test_a_hangup_replaces_the_workers_and_loses_no_call(machine: Machine) -> None:
    """Ours: a call in flight ends on the former worker, while new connections reach the new ones (SRV-3)."""
    former = machine.workers()[-2:]
    replaced = len(machine.lines("workers_replaced"))
    machine.upstream.gate = gate = asyncio.Event()
    statuses: list[int] = []

    async def call(tool: str) -> None:
        answer = await machine.call(tool)
        statuses.append(200 if "result" in answer.json() else answer.status_code)

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(call, "get_pet")
        await machine.upstream.arrived.wait()
        os.kill(machine.program.pid, signal.SIGHUP)
        await _until(lambda: len(machine.lines("worker_serving")) > len(former))
        for _ in range(32):
            await call("hello")
        gate.set()
    machine.upstream.gate = None
    await _until(lambda: len(machine.lines("workers_replaced")) > replaced)

    assert statuses == [200] * 40
    assert not any(map(_is_alive, former))
    assert not set(machine.workers()[-2:]) & set(former)


async def test_a_terminated_machine_finishes_its_calls_and_exits_with_0(servers: TestServers, tmp_path: Path) -> None:
    """Ours: SIGTERM drains all workers; a signal to the group, as of a terminal, does not hasten them (SRV-3)."""
    async with _machine(servers, tmp_path) as machine:
        await _prepare(machine)
        machine.upstream.gate = gate = asyncio.Event()
        answers: list[httpx.Response] = []

        async def call() -> None:
            answers.append(await machine.call("get_pet"))

        with anyio.fail_after(_PATIENCE_S):
            async with anyio.create_task_group() as group:
                group.start_soon(call)
                await machine.upstream.arrived.wait()
                for pid in (*machine.workers(), machine.program.pid):
                    os.kill(pid, signal.SIGTERM)
                await _until(lambda: len(machine.lines("draining")) >= 2)
                gate.set()
            assert await anyio.to_thread.run_sync(machine.program.wait) == 0
        assert answers[0].json()["result"]["structuredContent"] == {"ok": True}
        assert not any(map(_is_alive, machine.workers()))


async def test_workers_end_with_their_supervisor(servers: TestServers, tmp_path: Path) -> None:
    """Ours: a killed supervisor leaves no process behind that would hold its port (SRV-3)."""
    async with _machine(servers, tmp_path) as machine:
        machine.program.kill()
        await _until(lambda: not any(map(_is_alive, machine.workers())))
        with pytest.raises(httpx.TransportError):
            await machine.status()


async def test_a_failed_start_is_one_line_and_an_exit_code(tmp_path: Path) -> None:
    """Ours: the first worker fails alone, and the others are not started (SRV-3)."""
    variables = {
        "GATEWAY_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x",
        "GATEWAY_REDIS_URL": "redis://127.0.0.1:1/0",
        "GATEWAY_SECRET_KEYS": SECRET_KEY,
        "GATEWAY_OPERATOR_KEY": OPERATOR_KEY,
        "GATEWAY_LOG_LEVEL": "error",
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")} | variables
    arguments = [sys.executable, "-m", "gateway", "serve", "--workers", "2", "--port", "0", "--data-dir", str(tmp_path)]
    with anyio.fail_after(_PATIENCE_S):
        done = await anyio.run_process(arguments, env=environment, check=False)

    assert done.returncode == 1
    assert done.stderr.decode().strip().splitlines() == [f"gateway: {_REFUSED}"]


_REFUSED = "PostgreSQL cannot be reached: ConnectionRefusedError."


async def test_a_port_in_use_is_refused_also_by_workers(machine: Machine, tmp_path: Path) -> None:
    """Ours: a second gateway of the same user does not join the shared port of the first (SRV-3)."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    command = [sys.executable, "-m", "gateway", "serve", "--workers", "2", "--port", str(machine.port)]
    with anyio.fail_after(_PATIENCE_S):
        done = await anyio.run_process([*command, "--data-dir", str(tmp_path)], env=environment, check=False)

    assert done.returncode == 2
    assert f"GATEWAY_PORT: cannot listen on 127.0.0.1:{machine.port}" in done.stderr.decode()


@pytest.mark.parametrize(
    ("quota", "wanted"), [("max 100000", None), ("150000 100000", 1), ("1000 100000", 1), ("", None)]
)
def test_cores_follow_the_quota_of_the_control_group(tmp_path: Path, quota: str, wanted: int | None) -> None:
    """Ours: in a container, `--workers auto` starts no more workers than its quota has cores (SRV-3)."""
    (tmp_path / "cpu.max").write_text(quota)
    assert usable_cores(tmp_path / "cpu.max") == (len(os.sched_getaffinity(0)) if wanted is None else wanted)
