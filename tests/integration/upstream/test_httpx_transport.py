"""httpx through the one door."""

import gzip
import json

import httpx
import pytest

from gateway.domain.identifiers import TenantId
from gateway.errors import EgressDenied, UpstreamAnswerTooLarge, UpstreamError, UpstreamUnreachable
from gateway.upstream.bulkhead import BulkheadLimits
from gateway.upstream.client import UpstreamClient
from gateway.upstream.httpx_transport import guarded_client
from tests.integration.upstream.loopback import Exchange, body, loopback, says

TENANT = TenantId("ten_1")


async def test_a_request_and_its_answer_are_those_of_httpx() -> None:
    """Ours: what a library sends arrives, and it can read the answer with its headers, inflated."""
    content = json.dumps({"keys": ["é"]}).encode()
    answer = says(
        body(gzip.compress(content), "Content-Encoding: gzip", 'ETag: "1"', "Set-Cookie: a=b", "X: 1", "X: 2")
    )
    async with loopback(answer) as server, UpstreamClient(egress_allow=[server.authority]) as upstream:
        async with guarded_client(upstream, tenant=TENANT) as http:
            got = await http.post(f"http://{server.authority}/a?b=c d#e", json={"n": 1}, headers={"X-A": "1"})
        assert (await upstream.send(server.get())).status == 200  # the pool outlives the client

    assert got.json() == {"keys": ["é"]}
    assert (got.status_code, got.headers["etag"], got.headers.get_list("x")) == (200, '"1"', ["1", "2"])
    exchange = server.exchanges[0]
    assert exchange.line == "POST /a?b=c%20d"
    assert exchange.body == b'{"n":1}'
    assert exchange.header("x-a") == ["1"]
    assert exchange.header("user-agent") == ["mcp-gateway"]
    assert exchange.header("content-length") == ["7"]


@pytest.mark.parametrize("follow", [False, True])
async def test_a_redirect_is_followed_only_where_asked_and_is_checked_again(follow: bool) -> None:
    """Ours: no redirect leads to where the first request could not have gone (TEN-5)."""
    async with loopback(says(body(b"secret"))) as inner:
        location = f"Location: http://{inner.authority}/inner"
        async with (
            loopback(says(body(b"", location, status=302))) as server,
            UpstreamClient(egress_allow=[server.authority]) as upstream,
            guarded_client(upstream, tenant=TENANT, follow_redirects=follow) as http,
        ):
            if follow:
                with pytest.raises(EgressDenied):
                    await http.get(f"http://{server.authority}/", headers={"Authorization": "Bearer t"})
            else:
                assert (await http.get(f"http://{server.authority}/")).status_code == 302

        assert inner.connections == 0


async def test_a_redirect_elsewhere_takes_no_credential_along() -> None:
    """Ours: whoever follows redirects keeps credentials where they belong (TEN-5)."""
    async with loopback(says(body(b"{}"))) as other:
        async with (
            loopback(says(body(b"", f"Location: http://{other.authority}/", status=307))) as server,
            UpstreamClient(egress_allow=[server.authority, other.authority]) as upstream,
            guarded_client(upstream, tenant=TENANT, follow_redirects=True) as http,
        ):
            await http.get(f"http://{server.authority}/", headers={"Authorization": "Bearer t"})

        assert other.exchanges[0].header("authorization") == []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://2130706433:{port}/",
        "http://localhost:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
    ],
)
async def test_an_inner_address_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a library has no other way out than a call, also not through a proxy of the environment (TEN-5)."""
    async with loopback(says(body(b"secret"))) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{server.authority}")
        async with UpstreamClient() as upstream, guarded_client(upstream, tenant=TENANT) as http:
            with pytest.raises((EgressDenied, UpstreamUnreachable)) as caught:
                await http.get(url.format(port=server.port))

        assert server.connections == 0
        assert "127" not in str(caught.value)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://h/", "ws://h/", "http:///x", "/x"])
async def test_no_other_scheme_is_spoken(url: str) -> None:
    """Ours: http and https, nothing else."""
    async with UpstreamClient() as upstream, guarded_client(upstream, tenant=TENANT) as http:
        with pytest.raises((UpstreamError, httpx.UnsupportedProtocol, httpx.InvalidURL)):
            await http.get(url)


async def test_an_answer_is_bounded() -> None:
    """Ours: a library is given no more than it asked for."""
    async with (
        loopback(says(body(b"x" * 1001))) as server,
        UpstreamClient(egress_allow=[server.authority]) as upstream,
        guarded_client(upstream, tenant=TENANT, limit_bytes=1000) as http,
    ):
        with pytest.raises(UpstreamAnswerTooLarge):
            await http.get(f"http://{server.authority}/")


async def test_only_what_may_arrive_twice_is_sent_twice() -> None:
    """Ours: a library's POST is sent once whatever becomes of it (R2)."""

    async def drop(_: Exchange) -> bool:
        return False

    async with (
        loopback(drop) as server,
        UpstreamClient(egress_allow=[server.authority], rules=BulkheadLimits(failures=100)) as upstream,
        guarded_client(upstream, tenant=TENANT) as http,
    ):
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            with pytest.raises(UpstreamUnreachable):
                await http.request(method, f"http://{server.authority}/", content=b"x")
        assert len(server.exchanges) == 4
        with pytest.raises(UpstreamUnreachable):
            await http.get(f"http://{server.authority}/")

    assert len(server.exchanges) == 7
