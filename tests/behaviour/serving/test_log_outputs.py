"""Replicas whose log cannot be written: full disk, pipe without a reader, pipe that is not read, no descriptor."""

import fcntl
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import anyio
import anyio.to_thread
import httpx
import pytest

from gateway.app.readiness import Readiness
from tests.deploy.sockets import free_port
from tests.support.forks import Forked
from tests.support.gateway import OPERATOR_KEY, SECRET_KEY, RunningGateway
from tests.support.primitives import add, static_tool
from tests.support.serving import clients_of

Output = Path | Connection
_SMALL_PIPE = 4096


@contextmanager
def _full_device() -> Generator[Output]:
    yield Path("/dev/full")


@contextmanager
def _broken_pipe() -> Generator[Output]:
    reader, sink = os.pipe()
    os.close(reader)
    with Connection(sink, readable=False) as output:
        yield output


@contextmanager
def _unread_pipe() -> Generator[Output]:
    """A pipe that is full, and stays so until its end."""
    reader, sink = os.pipe()
    size = fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, _SMALL_PIPE)
    os.write(sink, b"x" * size)
    with Connection(reader, writable=False), Connection(sink, readable=False) as output:
        yield output


@asynccontextmanager
async def _replica(output: Output, folder: Path, database_url: str, redis_url: str) -> AsyncGenerator[RunningGateway]:
    """A replica both of whose standard streams lead there."""
    port = free_port()
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")},
        "GATEWAY_DATABASE_URL": database_url,
        "GATEWAY_REDIS_URL": redis_url,
        "GATEWAY_SECRET_KEYS": SECRET_KEY,
        "GATEWAY_OPERATOR_KEY": OPERATOR_KEY,
        "GATEWAY_LOG_LEVEL": "debug",
        "GATEWAY_LOG_FORMAT": "json",
    }
    arguments = ["serve", "--port", str(port), "--data-dir", str(folder)]
    child = Forked(arguments, variables, output=output, errors=output)
    url = f"http://127.0.0.1:{port}"
    try:
        async with clients_of(url, OPERATOR_KEY) as (admin, http):
            with anyio.fail_after(60):
                while not await _is_ready(http):
                    assert child.poll() is None, "the replica has ended"
                    await anyio.sleep(0.05)
            yield RunningGateway(url, admin, http, Readiness())
            child.terminate()
            assert await anyio.to_thread.run_sync(child.wait, 60) == 0
    finally:
        child.end()


async def _is_ready(http: httpx.AsyncClient) -> bool:
    try:
        return (await http.get("/readyz")).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("opened", [_full_device, _broken_pipe, _unread_pipe])
async def test_a_log_that_cannot_be_written_costs_lines_only(
    opened: Callable[[], AbstractContextManager[Output]], tmp_path: Path, database_url: str, redis_url: str
) -> None:
    """Ours: calls, refusals, changes, readiness and the stop go on; lost lines are counted (SRV-3, CAL-4)."""
    with opened() as output:
        async with _replica(output, tmp_path, database_url, redis_url) as gateway:
            with anyio.fail_after(30):
                await gateway.create_tenant("acme")
                key = await gateway.create_key("acme")
                for round_ in range(20):  # each change is a line about the catalog that is loaded again
                    await add(gateway, "acme", "tools", static_tool(f"tool_{round_}"))
                    answer = await gateway.rpc("acme", key, "tools/call", {"name": f"tool_{round_}"})
                    assert answer.json()["result"]["content"], answer.text
                wrong = await gateway.rpc("acme", "mcpg_acme_wrong", "tools/list")
                unknown = await gateway.rpc("acme", key, "tools/call", {"name": "none"})
                ready = await gateway.http.get("/readyz")
                metrics = (await gateway.admin.get(f"{gateway.url}/metrics")).text

    assert (wrong.status_code, ready.status_code) == (401, 200)
    assert unknown.json()["error"]["code"] == -32602
    lost = next(float(line.split()[1]) for line in metrics.splitlines() if line.startswith("gateway_log_lines_lost"))
    assert lost > 20 or opened is _unread_pipe  # those fit into the queue
