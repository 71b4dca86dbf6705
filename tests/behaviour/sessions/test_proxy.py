"""Streams through a real reverse proxy with its ordinary settings: buffering, compression and a short patience."""

import os
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from gateway.protocol.http.limits import KEEP_ALIVE_S
from tests.behaviour.sessions.conftest import IDLE_S, Talk
from tests.deploy.programs import find_program, library_path
from tests.deploy.sockets import free_port
from tests.support.events import Events
from tests.support.gateway import ACCEPT, RunningGateway
from tests.support.replicas import Mode, until
from tests.support.serving import NO_TLS, http_client

PROXY_S = 2
"""For how long the proxy waits for more of an answer."""

CONFIGURATION = """
daemon off; master_process off; pid {folder}/pid; error_log stderr warn; {user}
events {{ worker_connections 64; }}
http {{
  access_log off; gzip on; gzip_types application/json; gzip_min_length 1; gzip_proxied any;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass {upstream}; proxy_http_version 1.1; proxy_set_header Host $host; proxy_read_timeout {patience}s;
    }}
  }}
}}
"""


@asynccontextmanager
async def _proxied(gateway: RunningGateway, folder: Path) -> AsyncGenerator[str]:
    """nginx in front of the gateway; its URL. Skipped where it cannot be had."""
    program, port = find_program("nginx", "nginx", with_libraries=True), free_port()
    user = "user root;" if os.getuid() == 0 else ""
    text = CONFIGURATION.format(folder=folder, port=port, upstream=gateway.url, user=user, patience=PROXY_S)
    (folder / "nginx.conf").write_text(text)
    child = _launch(program, folder)
    url = f"http://127.0.0.1:{port}"
    try:
        async with http_client() as http:

            async def answers() -> bool:
                try:
                    return (await http.get(f"{url}/readyz")).status_code == 200
                except httpx.TransportError:
                    return False

            await until(answers, seconds=20)
        yield url
    finally:
        child.terminate()
        child.wait()


def _launch(program: Path, folder: Path) -> subprocess.Popen[bytes]:
    variables = os.environ | library_path(program)
    return subprocess.Popen([program, "-p", folder, "-c", folder / "nginx.conf"], env=variables)


async def test_a_silent_stream_outlives_the_timeout_of_a_proxy(impatient_talk: Talk, tmp_path: Path) -> None:
    """Ours: comments keep it open, nothing is held back or compressed, and an event comes at once (SRV-1)."""
    talk, replica = impatient_talk, impatient_talk.replicas.a
    assert KEEP_ALIVE_S == 15  # a quarter of what proxies ordinarily wait for
    place = f"/t/{talk.slug}/mcp"
    async with (
        _proxied(replica.gateway, tmp_path) as url,
        httpx2.AsyncClient(verify=NO_TLS, base_url=url, timeout=20) as http,
    ):
        headers = {"authorization": f"Bearer {talk.key}", "accept": ACCEPT, "accept-encoding": "gzip"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        opened = await http.post(place, json=body, headers=headers)
        headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        subscribe = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "note://1"}}
        await http.post(place, json=subscribe, headers=headers)
        async with http.stream("GET", place, headers=headers) as response:
            assert "content-encoding" not in response.headers
            events = Events(response)
            await events.next()
            silent_until = time.monotonic() + PROXY_S * 1.5
            while time.monotonic() < silent_until:
                replica.advance(IDLE_S / 3)
                await events.comment()
                await _answer(http, place, headers, await events.message())
            await talk.update("note://1", replica.gateway)
            while (message := await events.message())["method"] == "ping":
                await _answer(http, place, headers, message)
            assert message["params"] == {"uri": "note://1"}


async def _answer(http: httpx2.AsyncClient, place: str, headers: dict[str, str], ping: dict[str, Any]) -> None:
    assert ping["method"] == "ping"
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": ping["id"], "result": {}}
    answered = await http.post(place, json=answer, headers=headers)
    assert answered.status_code == 202, answered.text


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_progress_passes_a_proxy_unbuffered(talk: Talk, tmp_path: Path, mode: Mode) -> None:
    """Ours: a proxy that buffers does not buffer streams (SRV-1)."""
    notified: list[float] = []

    async def receive(progress: float, total: float | None, message: str | None) -> None:
        del total, message
        notified.append(progress)

    async with (
        _proxied(talk.replicas.a.gateway, tmp_path) as url,
        httpx2.AsyncClient(verify=NO_TLS, headers={"authorization": f"Bearer {talk.key}"}, timeout=20) as http,
        Client(streamable_http_client(f"{url}/t/{talk.slug}/mcp", http_client=http), mode=mode) as client,
    ):
        answer = await client.call_tool("count", {}, progress_callback=receive)

    assert notified == [1, 2, 3, 4, 5, 6]
    assert not answer.is_error
    assert urlsplit(url).hostname == "127.0.0.1"
    assert len(talk.upstream.seen) == 1
