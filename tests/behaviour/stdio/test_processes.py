"""`gateway stdio` as clients start it: what it writes where, how it starts and how it ends."""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.protocol.stdio.streams import ClaimedStreams, ClientGone, StdioStreams
from tests.behaviour.cli.conftest import environment
from tests.behaviour.stdio.conftest import Tenant
from tests.support.commands import Ended, run_gateway
from tests.support.documents import pets
from tests.support.replicas import until
from tests.support.stdio import PATIENCE_S, ended, stdio_fork, stdio_process
from tests.support.upstream import RecordingUpstream

_HANDSHAKE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


async def _run(*arguments: str, folder: Path, given: bytes = b"") -> Ended:
    """Run `gateway stdio` to its end."""
    return await run_gateway(["stdio", *arguments], folder=folder, variables=environment(), given=given)


async def test_a_file_of_requests_is_served_and_nothing_is_left(pets_file: Path, tmp_path: Path) -> None:
    """Ours: standard input may be a file; only messages are on standard output, and no file is left (SRV-1)."""
    work = tmp_path / "work"
    work.mkdir()
    lines = [_HANDSHAKE, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}]
    requests = "\n".join(json.dumps(line) for line in lines).encode()
    arguments, variables = ["stdio", "--spec", str(pets_file)], environment(TMPDIR=str(work))
    done = await run_gateway(arguments, folder=work, variables=variables, given=requests)

    assert done.code == 0, done.err
    responses = [json.loads(line) for line in done.out.splitlines()]
    assert [response["id"] for response in responses] == [1, 2]
    assert len(responses[1]["result"]["tools"]) == 4
    assert "4 operations" in done.err
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--spec", "missing.yaml"], 2, "cannot read missing.yaml"),
        (["--spec", "empty.yaml"], 1, "empty"),
        (["--spec", "broken.json"], 1, "broken.json"),
        (["--spec", "none.json"], 1, "no tool"),
        (["--spec", "-"], 2, "standard input carries MCP messages"),
        (["--spec", "http://127.0.0.1:1/openapi.json"], 1, "127.0.0.1"),
        (["--spec", "http://169.254.169.254/openapi.json"], 1, "169.254.169.254"),
        (["--spec", "pets.json", "--url", "http://127.0.0.1:1/t/a/mcp"], 2, "not both"),
        (["--spec", "pets.json", "--prefix", "a", "--prefix", "b"], 2, "give it once per document"),
        (["--spec", "pets.json", "--credential", "nonsense"], 2, "SCHEME=VALUE"),
        (["--spec", "pets.json", "--credential", "a=credential:hr"], 2, "no stored credentials"),
        (["--spec", "pets.json", "--credential", "x=y"], 1, "no document declares"),
        (["--spec", "pets.json", "--spec", "pets.json"], 1, "taken"),
        (["--spec", "pets.json", "--moderate", "perhaps"], 2, "perhaps"),
        (["--spec", "pets.json", "--base-url", "nonsense"], 1, "base URL"),
        ([], 2, "nothing to serve"),
        (["--url", "http://127.0.0.1:1/t/a/mcp", "--moderate", "confirm"], 2, "--moderate is only for --spec"),
        (["--url", "nonsense"], 2, "is not an http or https URL"),
        (["--url", "http://127.0.0.1:1"], 2, "give an MCP URL such as"),
        (["--url", "http://127.0.0.1:1/t/a/mcp"], 4, "no credential"),
        (["--url", "http://127.0.0.1:1/t/a/mcp", "--key", "a b"], 2, "characters"),
    ],
)
async def test_an_unservable_document_is_refused_before_any_message(
    arguments: list[str], code: int, reason: str, tmp_path: Path
) -> None:
    """Ours: one message on standard error, the documented exit code, and nothing on standard output (CLI-1)."""
    (tmp_path / "empty.yaml").write_text("\n")
    (tmp_path / "broken.json").write_text('{"openapi": ')
    (tmp_path / "none.json").write_text('{"openapi":"3.1.0","info":{"title":"x","version":"1"},"paths":{}}')
    (tmp_path / "pets.json").write_text(json.dumps(pets("http://127.0.0.1:1")))

    done = await _run(*arguments, folder=tmp_path, given=json.dumps(_HANDSHAKE).encode())

    assert (done.code, done.out) == (code, ""), done.err
    assert reason in done.err
    assert "Traceback" not in done.err


async def test_a_tried_document_is_served_on_standard_streams(pets_file: Path) -> None:
    """Ours: `gateway try --stdio` is the same server; what it cannot keep is refused (SRV-1)."""
    given = json.dumps(_HANDSHAKE).encode()
    arguments = ["try", pets_file.name, "--stdio"]
    tried = await run_gateway(arguments, folder=pets_file.parent, variables=environment(), given=given)
    assert (tried.code, json.loads(tried.out)["id"]) == (0, 1)
    kept = await run_gateway(
        [*arguments, "--data-dir", "x"], folder=pets_file.parent, variables=environment(), given=given
    )
    assert (kept.code, kept.out) == (2, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_with_calls_in_flight(
    pets_file: Path, upstream: RecordingUpstream, number: signal.Signals
) -> None:
    """Ours: it ends at once with code 0 (SRV-3).

    One task waits for both signals; `test_everything_else_goes_to_standard_error` shows that no worker is left by then.
    """
    upstream.gate, errors = asyncio.Event(), pets_file.with_suffix(".log")
    async with stdio_fork(["--spec", str(pets_file)], folder=pets_file.parent, errors=errors) as (process, client):
        await client.shake_hands()
        await client.begin("tools/call", {"name": "list_pets", "arguments": {}})
        await upstream.arrived.wait()
        process.send_signal(number)
        code = await anyio.to_thread.run_sync(process.wait, PATIENCE_S)
    assert code == 0, errors.read_text()
    assert "Traceback" not in errors.read_text()


async def test_a_signal_during_the_start_leaves_no_worker(tmp_path: Path) -> None:
    """Ours: a client that gives up while a document is read ends the worker as well (SRV-3)."""
    document = pets("http://127.0.0.1:1")
    one = document["paths"]["/pets"]["get"]
    document["paths"] |= {f"/n/{n}": {"get": {**one, "operationId": f"op{n}"}} for n in range(20_000)}
    (tmp_path / "large.json").write_text(json.dumps(document))
    async with stdio_process(["--spec", "large.json"], folder=tmp_path) as (process, _):
        workers: list[int] = []

        async def has_started() -> bool:
            workers[:] = _workers(process.pid)
            return bool(workers)

        await until(has_started, seconds=30)
        process.terminate()
        code, errors = await ended(process)
    assert code == 0, errors
    assert not any(Path(f"/proc/{worker}/stat").exists() for worker in workers)


async def test_a_client_that_stops_reading_ends_it(pets_file: Path) -> None:
    """Ours: a closed standard output (EPIPE) ends the process, quietly (SRV-3)."""
    errors = pets_file.with_suffix(".log")
    async with stdio_fork(["--spec", str(pets_file)], folder=pets_file.parent, errors=errors) as (process, client):
        client.close_output()
        await client.send(_HANDSHAKE)
        code = await anyio.to_thread.run_sync(process.wait, PATIENCE_S)
    assert code == 0, errors.read_text()
    assert "Traceback" not in errors.read_text()


@pytest.mark.parametrize(("closed", "code"), [(">&-", 2), ("<&- 2>&-", 0)])
async def test_closed_standard_streams(pets_file: Path, closed: str, code: int) -> None:
    """Ours: a closed input is an empty one, a closed output is refused, and no message goes to another file (SRV-3)."""
    shell = f"exec {sys.executable} -m gateway stdio --spec {pets_file} {closed}"
    done = await anyio.run_process(["sh", "-c", shell], env=environment(), check=False)
    assert done.returncode == code, done.stderr
    assert done.stdout == b""


async def test_inherited_streams_that_do_not_block_are_waited_for() -> None:
    """Ours: O_NONBLOCK, which another process set on the same pipe or terminal, ends nothing (SRV-3)."""
    (source, given), (taken, sink) = os.pipe(), os.pipe()
    for descriptor in (source, sink):
        os.set_blocking(descriptor, False)
    os.write(given, b"first\nsec")
    message, out = b"x" * 1_000_000, asyncio.StreamReader()
    reading, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(out), os.fdopen(taken, "rb")
    )
    async with asyncio.timeout(PATIENCE_S), StdioStreams(ClaimedStreams(source=source, sink=sink)) as streams:
        lines = streams.lines()
        assert await anext(lines) == b"first"
        for _ in range(3):
            _, read = await asyncio.gather(streams.write(message), out.readexactly(len(message) + 1))
            assert read == message + b"\n"
        os.write(given, b"ond\n")
        assert await anext(lines) == b"second"
        os.close(given)
        assert [line async for line in lines] == []
        reading.close()
        with pytest.raises(ClientGone):
            await streams.write(message)
    os.close(source)
    os.close(sink)


async def test_everything_else_goes_to_standard_error(tmp_path: Path, upstream: RecordingUpstream) -> None:
    """Ours: prints, writes to descriptor 1, warnings and children's output never mix with messages (SRV-1)."""
    (tmp_path / "pets.json").write_text(json.dumps(pets(upstream.url)))
    (tmp_path / "sitecustomize.py").write_text(_NOISE)
    found = os.environ.get("PYTHONPATH", "")
    path = f"{tmp_path}:{environment()['PYTHONPATH']}:{found}"
    async with stdio_process(["--spec", "pets.json"], folder=tmp_path, PYTHONPATH=path, GATEWAY_LOG_LEVEL="debug") as (
        process,
        client,
    ):
        await client.shake_hands()
        assert _workers(process.pid) == []
        for _ in range(20):
            await client.call("list_pets")
        client.end()
        assert process.stdout is not None
        assert await process.stdout.read() == b""
        code, errors = await ended(process)
    assert code == 0
    for noise in ("noise of print", "noise of a descriptor", "noise of a child", "noise of a warning", "call_recorded"):
        assert noise in errors
    assert client.others == []


async def test_a_bridge_process_passes_on_and_ends(acme: Tenant, tmp_path: Path) -> None:
    """Ours: the key comes from the environment, the tenant from --tenant, and the end of input ends it (SRV-1)."""
    arguments, errors = ["--url", acme.gateway.url, "--tenant", "acme"], tmp_path / "log"
    async with stdio_fork(arguments, folder=tmp_path, errors=errors, GATEWAY_KEY=acme.key) as (process, client):
        await client.shake_hands()
        assert len((await client.ask("tools/list"))["result"]["tools"]) == 4
        client.end()
        code = await anyio.to_thread.run_sync(process.wait, PATIENCE_S)
    assert (code, errors.read_text()) == (0, "")


async def test_the_lines_for_clients_start_the_same_server(pets_file: Path, tmp_path: Path) -> None:
    """Ours: a line of `--client-lines` starts the same elsewhere, without the key in it (SRV-1)."""
    printed = await _run("--spec", pets_file.name, "--prefix", "p", "--client-lines", folder=pets_file.parent)
    lines = dict(line.split("  ", 1) for line in printed.out.splitlines())
    servers = json.loads(lines["Claude Desktop"].strip())["mcpServers"]["pets"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert [servers["command"], *servers["args"][:3]] == [sys.executable, "-m", "gateway", "stdio"]
    done = await _run(*servers["args"][3:], folder=elsewhere, given=json.dumps(_HANDSHAKE).encode())
    assert json.loads(done.out)["id"] == 1
    assert set(lines) >= {"Claude Desktop", "Cursor", "VS Code", "Zed", "Codex"}
    bridged = await _run("--url", "http://127.0.0.1:1/t/acme/mcp", "--key", "secret", "--client-lines", folder=tmp_path)
    servers = json.loads(bridged.out.splitlines()[0].partition("{")[2].join(("{", "")))
    assert servers["mcpServers"]["acme"]["env"] == {"GATEWAY_KEY": "secret"}
    assert "secret" not in servers["mcpServers"]["acme"]["args"]


def _workers(parent: int) -> list[int]:
    """The workers that this process has started and not ended."""
    found: list[int] = []
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        with suppress(FileNotFoundError, ProcessLookupError):
            if b"gateway." in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found


_NOISE = """
import sys

if "stdio" in sys.argv or "stdio" in sys.orig_argv:
    import atexit, os, subprocess, threading, warnings

    def make():
        import time

        for _ in range(300):
            if sys.stdout is sys.stderr:
                print("noise of print", flush=True)
                os.write(1, b"noise of a descriptor\\n")
                warnings.warn("noise of a warning", stacklevel=1)
                subprocess.run(["echo", "noise of a child"], check=False)
            time.sleep(0.02)  # the noise lasts as long as the session

    warnings.simplefilter("always")
    threading.Thread(target=make, daemon=True).start()
"""
