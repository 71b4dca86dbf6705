"""One gateway process from start to exit, as an operator runs it."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest

from tests.deploy.sockets import free_port
from tests.support.commands import run_gateway
from tests.support.documents import pets
from tests.support.forks import Forked
from tests.support.gateway import ACCEPT, META, MODERN, OPERATOR_KEY, SECRET_KEY
from tests.support.serving import NO_TLS, http_client
from tests.support.upstream import RecordingUpstream, recording_upstream


def _environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    return {**kept, **variables}


@contextmanager
def _serving(data_dir: Path, port: int, **variables: str) -> Generator[Forked]:
    arguments = ["serve", "--port", str(port), "--data-dir", str(data_dir)]
    environment = _environment(GATEWAY_OPERATOR_KEY=OPERATOR_KEY, **variables)
    child = Forked(arguments, environment, errors=data_dir.with_suffix(".log"))
    try:
        yield child
    finally:
        child.end()


@contextmanager
def _started(data_dir: Path, port: int, **variables: str) -> Generator[subprocess.Popen[bytes]]:
    """`gateway serve` from its entry point, as an operator starts it, but without standard error."""
    arguments = ["-m", "gateway", "serve", "--port", str(port), "--data-dir", str(data_dir)]
    environment = _environment(GATEWAY_OPERATOR_KEY=OPERATOR_KEY, **variables)
    closing = ["/bin/sh", "-c", 'exec "$0" "$@" 2>&-', sys.executable]
    with subprocess.Popen([*closing, *arguments], env=environment) as child:
        try:
            yield child
        finally:
            child.kill()


async def _ready(port: int, child: subprocess.Popen[bytes] | Forked) -> None:
    async with http_client() as http:
        with anyio.fail_after(180):
            while True:
                assert child.poll() is None, "the gateway ended before it was ready"
                try:
                    if (await http.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                await anyio.sleep(0.02)


async def _exit_code(child: subprocess.Popen[bytes] | Forked) -> int:
    with anyio.fail_after(90):
        return await anyio.to_thread.run_sync(child.wait)


@pytest.fixture
async def upstream() -> AsyncGenerator[RecordingUpstream]:
    """An upstream that can be made to wait."""
    async with recording_upstream() as started:
        yield started


async def _prepare(port: int, upstream: RecordingUpstream) -> str:
    bearer = {"authorization": f"Bearer {OPERATOR_KEY}"}
    async with httpx.AsyncClient(
        verify=NO_TLS, base_url=f"http://127.0.0.1:{port}/admin/v1", headers=bearer, timeout=30
    ) as admin:
        (await admin.post("/tenants", json={"slug": "acme"})).raise_for_status()
        body = {"name": "pets", "document": pets(upstream.url)}
        (await admin.post("/tenants/acme/sources", json=body)).raise_for_status()
        created = await admin.post("/tenants/acme/keys", json={"name": "k", "scopes": ["mcp"]})
        key: str = created.json()["key"]
        return key


async def _call(port: int, key: str, tool: str = "get_pet") -> httpx.Response:
    headers = {
        "authorization": f"Bearer {key}",
        "accept": ACCEPT,
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    params: dict[str, Any] = {"name": tool, "arguments": {"id": 7}, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with http_client(timeout=30) as http:
        return await http.post(f"http://127.0.0.1:{port}/t/acme/mcp", json=body, headers=headers)


async def test_sigterm_finishes_the_call_in_flight_and_exits_with_0(
    tmp_path: Path, upstream: RecordingUpstream
) -> None:
    """Ours: a stop loses no call (SRV-3)."""
    port = free_port()
    upstream.gate = gate = asyncio.Event()
    answers: list[httpx.Response] = []
    with _started(tmp_path / "d", port, GATEWAY_EGRESS_ALLOW=upstream.authority) as child:
        await _ready(port, child)
        key = await _prepare(port, upstream)

        async def call() -> None:
            answers.append(await _call(port, key))

        with anyio.fail_after(90):
            async with anyio.create_task_group() as group:
                group.start_soon(call)
                await upstream.arrived.wait()
                child.send_signal(signal.SIGTERM)
                gate.set()
        assert await _exit_code(child) == 0
    assert answers[0].json()["result"]["structuredContent"] == {"ok": True}


async def test_a_second_start_finds_the_data_of_the_first(tmp_path: Path, upstream: RecordingUpstream) -> None:
    """Ours: embedded servers keep their data, also after a kill (SRV-3, SRV-1)."""
    port = free_port()
    with _serving(tmp_path / "d", port, GATEWAY_EGRESS_ALLOW=upstream.authority) as child:
        await _ready(port, child)
        key = await _prepare(port, upstream)
        child.kill()
        await _exit_code(child)
    port = free_port()
    with _serving(tmp_path / "d", port, GATEWAY_EGRESS_ALLOW=upstream.authority) as child:
        await _ready(port, child)
        answer = await _call(port, key)

    assert answer.json()["result"]["structuredContent"] == {"ok": True}


@pytest.mark.parametrize(
    ("variables", "reported"),
    [
        ({"GATEWAY_PORT": "http"}, "GATEWAY_PORT"),
        ({"GATEWAY_PROT": "1"}, "GATEWAY_PROT"),
        ({"GATEWAY_HOST": "0.0.0.0"}, "GATEWAY_SECRET_KEYS"),
        ({"GATEWAY_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x"}, "GATEWAY_SECRET_KEYS"),
    ],
)
async def test_a_broken_setting_is_one_line_and_an_exit_code(
    tmp_path: Path, variables: dict[str, str], reported: str
) -> None:
    """Ours: the operator reads which variable to correct (SRV-3)."""
    arguments = ["serve", "--data-dir", str(tmp_path / "d")]

    done = await run_gateway(arguments, folder=tmp_path, variables=_environment(**variables))

    assert done.code != 0
    lines = done.err.strip().splitlines()
    assert len(lines) == 1
    assert reported in lines[0]


@pytest.mark.parametrize("level", ["info", "debug"])
async def test_logs_are_json_lines_that_name_tenant_principal_and_correlation_id(
    tmp_path: Path, upstream: RecordingUpstream, database_url: str, redis_url: str, level: str
) -> None:
    """Ours: the operator finds a call by its id; at level debug, each has a line (CAL-4)."""
    port = free_port()
    servers = {"GATEWAY_DATABASE_URL": database_url, "GATEWAY_REDIS_URL": redis_url, "GATEWAY_SECRET_KEYS": SECRET_KEY}
    servers["GATEWAY_EGRESS_ALLOW"] = upstream.authority
    with _serving(tmp_path / "d", port, GATEWAY_LOG_FORMAT="json", GATEWAY_LOG_LEVEL=level, **servers) as child:
        await _ready(port, child)
        key = await _prepare(port, upstream)
        answer = await _call(port, key)
        refused = await _call(port, key, "no_pet")
        child.terminate()
        await _exit_code(child)
        assert child.stdout is not None
        [announced] = [json.loads(line) for line in child.stdout.read().splitlines()]
        lines = [json.loads(line) for line in (tmp_path / "d.log").read_text().splitlines()]

    correlation_id = answer.headers["x-request-id"]
    assert re.fullmatch(r"[0-9a-f]{24}", correlation_id)
    mine = [line for line in lines if line.get("correlation_id") == correlation_id]
    assert mine
    assert {line["tenant"] for line in mine if "tenant" in line} >= {"acme"}
    assert key not in json.dumps(lines)
    assert announced["url"] == f"http://127.0.0.1:{port}"
    events = {(line["event"], line.get("outcome")): line for line in lines}
    ended = [one for one in events if one[0] in {"call_ended", "request_refused"}]
    assert ended == ([] if level == "info" else [("call_ended", "ok"), ("request_refused", "not_found")])
    if ended:
        call, refusal = (events[one] for one in ended)
        assert (call["tenant"], call["source"], call["target"], call["profile"]) == (
            "acme",
            "pets",
            "get_pet",
            "default",
        )
        assert (call["status"], call["result_bytes"] > 0, call["correlation_id"]) == (200, True, correlation_id)
        assert call["duration_ms"] >= call["upstream_ms"] > 0
        assert (refusal["target"], refusal["rule"]) == ("no_pet", "unknown")
        assert refusal["correlation_id"] == refused.headers["x-request-id"]


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "reported"),
    [
        (["serve"], {"GATEWAY_PORT": "http"}, 2, "GATEWAY_PORT"),
        (["serve"], {"GATEWAY_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x"}, 2, "GATEWAY_SECRET_KEYS"),
        (["serve", "--no-such-option"], {}, 2, "--no-such-option"),
        (["serve", "--port", "0", "--data-dir", "/dev/null"], {}, 2, "/dev/null"),
        (["migrate"], {"GATEWAY_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x"}, 1, "PostgreSQL"),
    ],
)
async def test_a_failure_is_a_json_line_where_logs_are(
    arguments: list[str], variables: dict[str, str], code: int, reported: str, tmp_path: Path
) -> None:
    """Ours: with GATEWAY_LOG_FORMAT=json a collector can read whatever is written (SRV-3)."""
    ended = await run_gateway(
        arguments, folder=tmp_path, variables=_environment(GATEWAY_LOG_FORMAT="json", **variables)
    )

    lines = [json.loads(line) for line in ended.err.splitlines()]
    assert (ended.code, ended.out) == (code, "")
    assert (lines[-1]["event"], lines[-1]["level"], lines[-1]["exit_code"]) == ("command_failed", "error", code)
    assert reported in lines[-1]["reason"]
