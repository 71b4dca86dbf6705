"""Requests that must not get past the first layer, as bytes on a socket, against the whole gateway.

Every test here fails when the guard it names is taken out of `gateway.web`.
"""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from tests.support.gateway import OPERATOR_KEY, RunningGateway, running_gateway
from tests.support.servers import TestServers

FACES = [
    ("POST", "/t/acme/mcp"),
    ("GET", "/t/acme/mcp"),
    ("DELETE", "/t/acme/mcp"),
    ("OPTIONS", "/t/acme/mcp"),
    ("POST", "/t/acme/default/mcp"),
    ("GET", "/admin/v1/tenants"),
    ("POST", "/admin/v1/tenants"),
    ("DELETE", "/admin/v1/tenants/acme"),
    ("GET", "/admin/v1/openapi.json"),
    ("GET", "/nowhere"),
]


@pytest.fixture(scope="module")
async def gateway(servers: TestServers) -> AsyncGenerator[RunningGateway]:
    """One for all: no request here gets far enough to change anything."""
    with servers.database() as database:
        async with running_gateway(database.app_url, servers.own_redis()) as running:
            yield running


async def _speak(gateway: RunningGateway, *parts: bytes, closes: bool = True) -> tuple[int, bytes]:
    """Send these bytes and read the whole response: its status, and everything."""
    received = b""
    port = int(gateway.url.rpartition(":")[2])
    with anyio.fail_after(20):
        async with await anyio.connect_tcp("127.0.0.1", port) as connection:
            for part in parts:
                await connection.send(part)
            while closes or b"\r\n\r\n" not in received:
                try:
                    received += await connection.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    break
    return int(received.split(b" ", 2)[1]), received


async def _ask(gateway: RunningGateway, method: str, path: str, *headers: str, host: str | None = None) -> int:
    """The status of one request with these headers, sent as they are."""
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {host or gateway.url.removeprefix('http://')}",
        f"Authorization: Bearer {OPERATOR_KEY}",
        "Connection: close",
        *headers,
    ]
    status, _ = await _speak(gateway, "\r\n".join([*lines, "", ""]).encode("latin-1"))
    return status


async def test_a_foreign_host_is_refused_on_every_face(gateway: RunningGateway) -> None:
    """Ours: a foreign name that resolves to us is refused (DNS rebinding), whatever the method and the path (SRV-1)."""
    for method, path in FACES:
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost@evil.example"):
            assert await _ask(gateway, method, path, host=host) == 421, (method, path, host)
        assert await _ask(gateway, method, path) != 421, (method, path)


async def test_a_request_without_a_host_is_refused(gateway: RunningGateway) -> None:
    """RFC 9112 §3.2: no Host, an empty one or two of them make no request."""
    for lines in ("GET /nowhere HTTP/1.0\r\n", "GET /nowhere HTTP/1.1\r\nHost:\r\n"):
        status, _ = await _speak(gateway, f"{lines}Connection: close\r\n\r\n".encode())
        assert status == 421
    own = gateway.url.removeprefix("http://")
    for second in (own, "evil.example"):
        assert await _ask(gateway, "GET", "/nowhere", f"Host: {second}") == 400
        assert await _ask(gateway, "GET", "/nowhere", f"Host: {own}", host=second) == 400


async def test_a_foreign_origin_is_refused_on_every_face(gateway: RunningGateway) -> None:
    """MCP: servers must check the Origin; a page of another site gets 403 on every method and path."""
    own = gateway.url.removeprefix("http://")
    for method, path in FACES:
        for origin in ("http://evil.example", f"http://{own}.evil.example", "null", "http://127.0.0.1:1", ""):
            assert await _ask(gateway, method, path, f"Origin: {origin}") == 403, (method, path, origin)
        assert await _ask(gateway, method, path, f"Origin: http://{own}") != 403, (method, path)


async def test_two_origins_are_no_origin(gateway: RunningGateway) -> None:
    """Ours: a good Origin does not cover a bad one."""
    own = f"Origin: {gateway.url}"

    assert await _ask(gateway, "POST", "/t/acme/mcp", own, "Origin: http://evil.example") == 400
    assert await _ask(gateway, "POST", "/t/acme/mcp", "Origin: http://evil.example", own) == 400


async def test_configured_origins_hosts_and_header_sizes_are_accepted(database_url: str, redis_url: str) -> None:
    """Ours: origins that the operator allows are accepted, and no others. Proxies for sign-on send 20 KB of cookies."""
    allowed: dict[str, Any] = {
        "allowed_hosts": ("gw.example.com", "*.mcp.example"),
        "allowed_origins": ("https://app.example",),
    }
    async with running_gateway(database_url, redis_url, **allowed) as gateway:
        for host in ("gw.example.com", "acme.mcp.example"):
            assert await _ask(gateway, "GET", "/admin/v1/tenants", "Origin: https://app.example", host=host) == 200
        assert await _ask(gateway, "GET", "/admin/v1/tenants", host="www.example.com") == 421
        assert await _ask(gateway, "GET", "/admin/v1/tenants", "Origin: https://app.example:1") == 403
        for size, status in ((20_000, 200), (33_000, 431)):
            assert await _ask(gateway, "GET", "/admin/v1/tenants", f"Cookie: s={'a' * size}") == status


async def test_probes_answer_under_any_name(gateway: RunningGateway) -> None:
    """Ours: an orchestrator probes by address; nothing else is reached that way."""
    for path in ("/healthz", "/readyz"):
        assert await _ask(gateway, "GET", path, host="10.0.0.7:8080") == 200
    for path in ("/healthz/", "/healthz/../admin/v1/tenants", "//healthz", "/admin/v1/tenants?/healthz"):
        assert await _ask(gateway, "GET", path, host="10.0.0.7:8080") == 421


async def test_two_credentials_are_refused(gateway: RunningGateway) -> None:
    """Ours: a proxy in front must not have checked another credential than the one we use."""
    for method, path in FACES:
        assert await _ask(gateway, method, path, "Authorization: Bearer another") == 400, (method, path)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([f"x-{number}: y" for number in range(70)], 431),
        (["x: y"] * 3000, 431),
        (["x-long: " + "y" * 17_000], 431),
        (["x-long: " + "y" * 6_000] * 3, 431),
        (["x" * 20_000 + ": y"], 431),
    ],
)
async def test_too_many_or_too_long_headers_are_refused(
    gateway: RunningGateway, headers: list[str], status: int
) -> None:
    """Ours: the server itself sets no limit here, so the edge does: 64 fields, 16 KiB."""
    assert await _ask(gateway, "GET", "/healthz", *headers) == status
    assert await _ask(gateway, "GET", "/healthz", *[f"x-{number}: y" for number in range(40)]) == 200


async def test_a_long_url_is_refused(gateway: RunningGateway) -> None:
    """Ours: 4 KiB of path and query are enough."""
    for path in ("/" + "a" * 4097, "/healthz?" + "a" * 4097, "/%61" * 1100):
        assert await _ask(gateway, "GET", path) == 414
    assert await _ask(gateway, "GET", "/healthz?" + "a" * 4000) == 200


async def test_a_refusal_has_an_id_and_no_details(gateway: RunningGateway) -> None:
    """Ours: a refusal of the edge is a problem like every other, with the caller's id and the usual headers."""
    request = "GET /t/acme/mcp HTTP/1.1\r\nHost: evil.example\r\nX-Request-ID: request-1\r\n\r\n"

    status, received = await _speak(gateway, request.encode())

    assert status == 421
    lowered = received.lower()
    assert b"content-type: application/problem+json" in lowered
    assert b"x-request-id: request-1" in lowered
    assert b"x-content-type-options: nosniff" in lowered
    assert b"connection: close" in lowered
    assert b'"correlation_id":"request-1"' in received
    assert b'"code":"http.host_refused"' in received


@pytest.mark.parametrize(
    "headers",
    [
        "Host: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Host: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        "Host: localhost\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
        "Host: localhost\r\nContent-Length: -1\r\n\r\n",
        "Host: localhost\r\nContent-Length: 1_0\r\n\r\n",
        "Host: localhost\n\n",
        "Host: localhost\r\nx\0y: z\r\n\r\n",
        "Host : localhost\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
)
async def test_ambiguous_framing_is_refused(gateway: RunningGateway, headers: str) -> None:
    """RFC 9112 §6.3: a proxy in front and we must not see different requests in the same bytes."""
    status, _ = await _speak(gateway, f"POST /t/acme/mcp HTTP/1.1\r\n{headers}".encode("latin-1"))

    assert status == 400
