"""Attacks on the way out: an upstream that sends the gateway on to somewhere else."""

import pytest

from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.http.requests import Credential, UpstreamRequest
from gateway.errors import FetchFailed
from gateway.upstream.auth.credentials import apply
from gateway.upstream.client import UpstreamClient
from gateway.upstream.document_fetch import fetch_document
from tests.integration.upstream.loopback import OK, body, loopback, states

SECURITY = (
    (
        SchemePlan(name="a", kind=SchemeKind.BEARER),
        SchemePlan(name="b", kind=SchemeKind.API_KEY_QUERY, field="key"),
        SchemePlan(name="c", kind=SchemeKind.API_KEY_COOKIE, field="SID"),
    ),
)
STORED = {name: Credential(value="s3cret") for name in "abc"}


@pytest.mark.parametrize("status", [300, 301, 302, 303, 305, 307, 308])
@pytest.mark.parametrize("location", ["http://{other}/", "//{other}/", "http://169.254.169.254/latest", "/same"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_no_redirect_is_followed_and_no_credential_leaves(status: int, location: str, method: str) -> None:
    """Ours: a 3xx is an answer; the place it names is never asked, allowed or not (TEN-5)."""
    async with loopback(states(OK)) as other:
        target = location.format(other=other.authority)
        async with (
            loopback(states(body(b"{}", f"Location: {target}", "Refresh: 0; url=/x", status=status))) as server,
            UpstreamClient(egress_allow=[server.authority, other.authority]) as upstream,
        ):
            request = UpstreamRequest(method=method, url=f"http://{server.authority}/x", idempotent=method == "GET")
            answer = await upstream.send(apply(request, SECURITY, STORED))
            with pytest.raises(FetchFailed, match=f"status {status}"):
                await fetch_document(upstream, f"http://{server.authority}/x", limit=1 << 20)

        assert answer.status == status
        assert [exchange.line for exchange in server.exchanges] == [f"{method} /x?key=s3cret", "GET /x"]
        assert other.connections == 0


async def test_a_document_is_fetched_without_any_credential() -> None:
    """Ours: nothing that is stored for a source goes to the place its document comes from (TEN-4)."""
    async with loopback(states(OK)) as server, UpstreamClient(egress_allow=[server.authority]) as upstream:
        await upstream.send(apply(UpstreamRequest(method="GET", url=f"http://{server.authority}/"), SECURITY, STORED))
        await fetch_document(upstream, f"http://{server.authority}/doc", limit=1 << 20)

    assert b"s3cret" in server.exchanges[0].head
    assert b"s3cret" not in server.exchanges[1].head
