"""Documents by URL."""

import gzip

import pytest

from gateway.errors import DocumentTooLarge, FetchFailed
from gateway.upstream.client import UpstreamClient
from gateway.upstream.document_fetch import fetch_document
from tests.integration.upstream.loopback import body, loopback, states

MIB = 1 << 20


async def test_a_document_is_its_bytes() -> None:
    """OpenAPI: documents come by http, encoded or not; the URL is sent encoded and without its fragment."""
    raw = b'{"openapi": "3.1.0"}'
    answer = states(body(gzip.compress(raw), "Content-Encoding: gzip", "Content-Type: text/plain"))
    async with loopback(answer) as server, UpstreamClient(egress_allow=[server.authority]) as upstream:
        read = await fetch_document(upstream, f" http://{server.authority}/a b/é.json?x=1#part ", limit=MIB)

    assert read == raw
    assert server.exchanges[0].line == "GET /a%20b/%C3%A9.json?x=1"
    assert server.exchanges[0].header("authorization") == []


@pytest.mark.parametrize("status", [201, 206, 401, 404, 500])
async def test_any_other_status_is_named(status: int) -> None:
    """Ours: only 200 is a document."""
    answer = states(body(b"secret", status=status))
    async with loopback(answer) as server, UpstreamClient(egress_allow=[server.authority]) as upstream:
        with pytest.raises(FetchFailed, match=f"status {status}") as caught:
            await fetch_document(upstream, f"http://{server.authority}/", limit=MIB)

    assert "secret" not in str(caught.value)


async def test_a_redirect_is_not_followed_and_its_target_not_shown() -> None:
    """Ours: the error names the alternative."""
    async with loopback(states(body(b"", "Location: http://10.0.0.1/secret", status=302))) as server:
        async with UpstreamClient(egress_allow=[server.authority]) as upstream:
            with pytest.raises(FetchFailed, match="redirect") as caught:
                await fetch_document(upstream, f"http://{server.authority}/", limit=MIB)

        assert "10.0.0.1" not in str(caught.value)
        assert len(server.exchanges) == 1


async def test_a_document_may_be_larger_than_an_answer_but_not_than_its_limit() -> None:
    """Ours: the limit of a document is its own."""
    answer = states(body(b"x" * (2 * MIB)))
    async with loopback(answer) as server, UpstreamClient(egress_allow=[server.authority], limit_bytes=MIB) as upstream:
        assert len(await fetch_document(upstream, f"http://{server.authority}/", limit=2 * MIB)) == 2 * MIB
        with pytest.raises(DocumentTooLarge):
            await fetch_document(upstream, f"http://{server.authority}/", limit=2 * MIB - 1)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "/x",
        "//h/x",
        "file:///etc/passwd",
        "ftp://h/x",
        "data:application/json,{}",
        "ws://h/",
        "gopher://h/",
        "http://",
        "http:///x",
        "http:x",
        "http://user@h/",
        "http://user:secret@h/",
        "http://:secret@h/",
        "http://[::1",
        "http://h:x/",
    ],
)
async def test_a_url_that_is_not_plain_http_is_refused(url: str) -> None:
    """Ours: http and https only, without credentials in the URL; the error does not repeat it."""
    async with UpstreamClient() as upstream:
        with pytest.raises(FetchFailed, match="document URL") as caught:
            await fetch_document(upstream, url, limit=MIB)

    assert "secret" not in str(caught.value)
    assert "passwd" not in str(caught.value)
