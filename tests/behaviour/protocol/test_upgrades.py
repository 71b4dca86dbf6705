"""Clients that would rather go on in another protocol, as Java's HTTP client asks with each request over plain HTTP."""

import json
import re
from collections.abc import Sequence

import anyio
import pytest

from tests.behaviour.protocol.conftest import Acme
from tests.support.gateway import META, MODERN

PATIENCE_S = 20.0
H2C = ("Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA")
UPGRADES: Sequence[Sequence[str]] = (
    ("Connection: Upgrade, HTTP2-Settings", *H2C),
    ("Connection: upgrade, keep-alive", "Upgrade: foo/1, h2c"),
)
CALL = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "get_pet", "arguments": {"id": 7}, "_meta": META},
    }
).encode()


def _head(acme: Acme, *fields: str) -> bytes:
    lines = [
        f"POST /t/{acme.slug}/mcp HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {acme.key}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {MODERN}",
        "Mcp-Method: tools/call",
        "Mcp-Name: get_pet",
        *fields,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


async def _converse(acme: Acme, *parts: bytes) -> list[bytes]:
    """Send these parts, each after the one before was taken, and read as many whole answers as calls were made."""
    port = int(acme.gateway.url.rpartition(":")[2])
    received = b""
    with anyio.fail_after(PATIENCE_S):
        async with await anyio.connect_tcp("127.0.0.1", port) as connection:
            for part in parts:
                await connection.send(part)
            async for more in connection:
                received += more
    return re.split(rb"HTTP/1\.1 (?=\d{3} )", received)[1:]


@pytest.mark.parametrize("upgrade", UPGRADES)
async def test_a_requested_upgrade_costs_no_body(acme: Acme, upgrade: Sequence[str]) -> None:
    """RFC 9110 §7.8: a server may ignore Upgrade, and then it serves the request as it is (SRV-1, CAL-1)."""
    sized, last = f"Content-Length: {len(CALL)}", _head(acme, "Connection: close", f"Content-Length: {len(CALL)}")
    chunked = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (9, CALL[:9], len(CALL) - 9, CALL[9:])
    reported = [
        [_head(acme, *upgrade, sized) + CALL, last + CALL],
        [_head(acme, *upgrade, sized) + CALL + last + CALL],
        [_head(acme, *upgrade, sized), CALL[:9], CALL[9:], last, CALL],
        [_head(acme, *upgrade, "Transfer-Encoding: chunked") + chunked, last + CALL],
        [_head(acme, *upgrade, sized) + CALL[:9], CALL[9:] + last + CALL],
        [_head(acme, *upgrade, sized) + CALL + _head(acme, *upgrade, sized) + CALL + last + CALL],
    ]

    for parts in reported:
        answers = await _converse(acme, *parts)
        assert len(answers) == b"".join(parts).count(b"POST /t/")
        assert all(answer.startswith(b"200 ") and b'"ok":true' in answer for answer in answers), answers


async def test_a_request_without_a_body_may_request_an_upgrade(acme: Acme) -> None:
    """RFC 9110 §7.8: the connection serves what comes next (SRV-1)."""
    upgrade = "\r\n".join(["GET /healthz HTTP/1.1", "Host: 127.0.0.1", *UPGRADES[0], "", ""])
    last = _head(acme, "Connection: close", f"Content-Length: {len(CALL)}") + CALL

    for parts in ([upgrade.encode() + last], [upgrade.encode(), last]):
        answers = await _converse(acme, *parts)
        assert [answer[:3] for answer in answers] == [b"200", b"200"]


async def test_many_requested_upgrades_are_read_in_turn(acme: Acme) -> None:
    """Ours: the client chooses how many requests come in one piece, and exhausts nothing (TEN-5)."""
    upgrade = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
    last = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"

    answers = await _converse(acme, upgrade * 2000 + last)

    assert len(answers) == 2001
    assert {answer[:3] for answer in answers} == {b"200"}


@pytest.mark.parametrize("framing", [("Content-Length: 5", "Transfer-Encoding: chunked"), ("Content-Length: 5",) * 2])
async def test_ambiguous_framing_is_refused_with_an_upgrade_too(acme: Acme, framing: Sequence[str]) -> None:
    """Ours: a reader that continues reads the same (TEN-5)."""
    answers = await _converse(acme, _head(acme, *UPGRADES[0], *framing) + b"5\r\nhello\r\n0\r\n\r\n")

    assert [answer[:3] for answer in answers] == [b"400"]
