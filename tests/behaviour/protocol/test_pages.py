"""Pages of other sites: the preflight before a browser's call, and the headers of a response that the page may read."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.support.gateway import ACCEPT, META, MODERN, RunningGateway
from tests.support.servers import TestServers
from tests.support.stand import Stand, running_stand

PAGE = "https://app.example"
HEADERS = "authorization, content-type, mcp-session-id, mcp-protocol-version, mcp-method, mcp-param-id"
CORS = "access-control-allow-origin"


@pytest.fixture(scope="module")
async def common_stand(servers: TestServers) -> AsyncGenerator[Stand]:
    """A gateway that one page may call."""
    async with running_stand(servers, upstreams=0, allowed_origins=(PAGE,)) as started:
        yield started


@pytest.fixture
async def gateway(stand: Stand) -> RunningGateway:
    """The same, with a tenant."""
    await stand.gateway.create_tenant("acme")
    return stand.gateway


async def _preflight(
    gateway: RunningGateway, origin: str, path: str = "/t/acme/mcp", *, wanted: str = HEADERS
) -> httpx.Response:
    asking = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": wanted,
    }
    return await gateway.http.options(path, headers=asking)


def _words(header: str) -> set[str]:
    return {word.strip().lower() for word in header.split(",")}


async def test_a_browser_gets_the_permissions_of_a_named_page(gateway: RunningGateway) -> None:
    """Fetch standard: a preflight comes without a credential and asks for method and headers (SRV-1)."""
    for path in ("/t/acme/mcp", "/t/acme/default/mcp", "/t/acme/sse", "/admin/v1/tenants"):
        answer = await _preflight(gateway, PAGE, path)

        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers[CORS] == PAGE
        assert {"get", "post", "delete"} <= _words(answer.headers["access-control-allow-methods"])
        assert _words(answer.headers["access-control-allow-headers"]) == _words(HEADERS)
        assert "access-control-allow-credentials" not in answer.headers
        assert "origin" in _words(answer.headers["vary"])


async def test_other_pages_get_no_permission(gateway: RunningGateway) -> None:
    """Ours: exactly the origins that the operator named, and no wildcard (CAL-5, TEN-5)."""
    for origin in ("https://evil.example", "null", f"{PAGE}.evil.example", f"{PAGE}:1"):
        answer = await _preflight(gateway, origin)

        assert answer.status_code == 403
        assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_the_gateways_own_pages_need_no_permission(gateway: RunningGateway) -> None:
    """Ours: no CORS header is sent where the operator named no origin; without its credential OPTIONS is refused
    (TEN-2).
    """
    answer = await _preflight(gateway, gateway.url)

    assert answer.status_code == 401
    assert CORS not in answer.headers


async def test_a_page_may_read_its_session_and_every_refusal(gateway: RunningGateway) -> None:
    """Ours: the response headers that a client needs are exposed, also where the response is an error (SRV-1)."""
    key = await gateway.create_key("acme")
    body = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": META}}
    headers = {"accept": ACCEPT, "origin": PAGE, "mcp-protocol-version": MODERN, "mcp-method": "server/discover"}

    good = await gateway.http.post("/t/acme/mcp", json=body, headers={**headers, "authorization": f"Bearer {key}"})
    refused = await gateway.http.post("/t/acme/mcp", json=body, headers=headers)

    assert (good.status_code, refused.status_code) == (200, 401)
    for answer in (good, refused):
        assert answer.headers[CORS] == PAGE
        shown = _words(answer.headers["access-control-expose-headers"])
        assert {"mcp-session-id", "www-authenticate", "retry-after"} <= shown


async def test_requested_headers_of_a_browser_are_not_echoed_unread(gateway: RunningGateway) -> None:
    """Ours: only names of headers come back (TEN-5)."""
    answer = await _preflight(gateway, PAGE, wanted='x-good, "<script>"')

    assert answer.status_code == 204
    assert "access-control-allow-headers" not in answer.headers
