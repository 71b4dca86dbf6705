"""Bodies that must not be taken, as bytes on a socket, against the whole gateway.

Every test here fails when the guard it names is taken out of `gateway.web`.
"""

import json
from collections.abc import AsyncGenerator
from functools import partial

import anyio
import pytest

from gateway.web.edge import EdgeLimits
from tests.support.gateway import ACCEPT, MODERN, OPERATOR_KEY, RunningGateway, running_gateway
from tests.support.servers import TestServers

BROKEN = [
    b"",
    b"{",
    b'{"slug":"a","slug":"b"}',
    b'{"slug":"a","x":{"y":1,"y":2}}',
    b'{"slug":NaN}',
    b'{"slug":1e999}',
    b'{"slug":"\\ud800"}',
    b'\xef\xbb\xbf{"slug":"a"}',
    '{"slug":"a"}'.encode("utf-16"),
    b'{"slug":"\xff"}',
    b"[" * 65 + b"]" * 65,
    b'{"a":' * 10_000,
    b"9" * 10_000,
]


@pytest.fixture(scope="module")
async def gateway(servers: TestServers) -> AsyncGenerator[RunningGateway]:
    """One for all, with the tenant `acme`: no body here is taken."""
    with servers.database() as database, pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.web.edge.EdgeLimits", partial(EdgeLimits, body_grace_s=0.5))
        async with running_gateway(database.app_url, servers.own_redis()) as running:
            await running.create_tenant("acme")
            yield running


@pytest.fixture
async def key(gateway: RunningGateway) -> str:
    """A new key of the tenant `acme`."""
    return await gateway.create_key("acme")


def _head(gateway: RunningGateway, path: str, credential: str, *headers: str) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {gateway.url.removeprefix('http://')}",
        f"Authorization: Bearer {credential}",
        "Content-Type: application/json",
        f"Accept: {ACCEPT}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


async def _receive(gateway: RunningGateway, *parts: bytes) -> tuple[int, bytes]:
    """Send these bytes, then wait until the gateway answers and closes."""
    received = b""
    port = int(gateway.url.rpartition(":")[2])
    with anyio.fail_after(20):
        async with await anyio.connect_tcp("127.0.0.1", port) as connection:
            try:
                for part in parts:
                    await connection.send(part)
                while True:
                    received += await connection.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                pass
    return int(received.split(b" ", 2)[1]), received


@pytest.mark.parametrize("body", BROKEN)
async def test_json_that_is_not_one_value_is_refused_by_the_admin_face(gateway: RunningGateway, body: bytes) -> None:
    """Ours: nothing is stored of a body that readers understand differently; the problem names the place."""
    answer = await gateway.admin.post("/tenants", content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 400
    assert answer.json()["code"] == "input.body_invalid"
    assert answer.json()["errors"]
    assert [item["slug"] for item in (await gateway.admin.get("/tenants")).json()["items"]] == ["acme"]


@pytest.mark.parametrize("era", [MODERN, "2025-11-25"])
async def test_json_that_is_not_one_value_is_refused_by_the_mcp_face(
    gateway: RunningGateway, key: str, era: str
) -> None:
    """JSON-RPC: an unparseable body is a parse error, in both eras, before any other check."""
    headers = {
        "authorization": f"Bearer {key}",
        "content-type": "application/json",
        "accept": ACCEPT,
        "mcp-protocol-version": era,
    }
    for body in BROKEN:
        answer = await gateway.http.post("/t/acme/mcp", content=body, headers=headers)
        assert answer.status_code == 400, body[:40]
        assert answer.json()["error"]["code"] in {-32700, -32600}, body[:40]


@pytest.mark.parametrize("path", ["/t/acme/mcp", "/admin/v1/tenants"])
async def test_a_declared_length_above_the_limit_is_not_awaited(gateway: RunningGateway, key: str, path: str) -> None:
    """Ours: 413 comes before the body does, and the connection ends."""
    credential = key if path.startswith("/t/") else OPERATOR_KEY

    status, received = await _receive(
        gateway, _head(gateway, path, credential, "Content-Length: 99999999999", "Connection: close")
    )

    assert status == 413
    assert b"document.too_large" in received


async def test_a_chunked_body_is_cut_at_the_limit(gateway: RunningGateway, key: str) -> None:
    """Ours: a body without a declared length is counted as it comes."""
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"

    status, _ = await _receive(
        gateway, _head(gateway, "/t/acme/mcp", key, "Transfer-Encoding: chunked", "Connection: close"), *[chunk] * 20
    )

    assert status == 413


@pytest.mark.parametrize("framing", ["Content-Length: 100", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("path", ["/t/acme/mcp", "/admin/v1/tenants"])
async def test_a_body_that_never_comes_times_out(gateway: RunningGateway, key: str, path: str, framing: str) -> None:
    """Ours: a half-sent request does not hold a place for ever: 408, and the connection ends."""
    credential = key if path.startswith("/t/") else OPERATOR_KEY

    status, received = await _receive(gateway, _head(gateway, path, credential, framing), b'5\r\n{"slu\r\n')

    assert status == 408
    assert json.loads(received.partition(b"\r\n\r\n")[2])["code"] == "http.body_too_slow"


async def test_many_half_sent_requests_do_not_stop_the_others(gateway: RunningGateway, key: str) -> None:
    """Ours: a client with many open connections and half a body delays no other client."""
    port = int(gateway.url.rpartition(":")[2])
    head = _head(gateway, "/t/acme/mcp", key, "Content-Length: 100")
    given_up = refused = 0

    async def hold() -> None:
        nonlocal given_up, refused
        async with await anyio.connect_tcp("127.0.0.1", port) as connection:
            await connection.send(head)
            answer = await connection.receive()
            given_up += b" 408 " in answer
            refused += b" 429 " in answer  # a key has not so many requests

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(200):
                tasks.start_soon(hold)
            for _ in range(20):
                assert (await gateway.admin.get("/tenants")).status_code == 200
    assert given_up > 0
    assert given_up + refused == 200
