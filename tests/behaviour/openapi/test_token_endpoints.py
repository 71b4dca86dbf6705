"""Token endpoints as they are found in the world, and tokens that many calls lose at once."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs

import pytest

from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import SourceId, TenantId
from gateway.errors import TokenRefused
from gateway.upstream.auth.oauth_tokens import Tokens
from gateway.upstream.client import UpstreamClient
from tests.support.upstream import RecordingUpstream, recording_upstream

ACME, SOURCE = TenantId("acme"), SourceId("src_1")
STORED = {"oauth": Credential(username="client", value="secret")}


@asynccontextmanager
async def endpoint() -> AsyncGenerator[tuple[RecordingUpstream, Tokens, tuple[tuple[SchemePlan, ...], ...]]]:
    """A token endpoint, what asks it, and a requirement that its tokens meet."""
    async with recording_upstream() as server, UpstreamClient(egress_allow=[server.authority]) as upstream:
        scheme = SchemePlan(name="oauth", kind=SchemeKind.CLIENT_CREDENTIALS, token_url=f"{server.url}/token")
        yield server, Tokens(upstream), ((scheme,),)


def grant(server: RecordingUpstream, token: str) -> None:
    """Give this token from now on."""
    server.body = json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": "3600"}).encode()


@pytest.mark.parametrize(
    ("status", "body", "count"),
    [
        (401, b"", 2),
        (401, b"<html>", 2),
        (400, b'{"error":"invalid_request"}', 2),
        (401, b'{"error":"invalid_client"}', 2),
        (400, b'{"error":"invalid_scope"}', 1),
        (403, b"", 1),
        (500, b"", 1),
    ],
)
async def test_a_client_that_is_not_found_names_itself_in_the_body(status: int, body: bytes, count: int) -> None:
    """RFC 6749 section 2.3.1: servers may want a client in the body, and miss it in many words (OAS-2)."""
    async with endpoint() as (server, tokens, security):
        server.status, server.body = status, body
        with pytest.raises(TokenRefused) as caught:
            await tokens.exchange(ACME, SOURCE, security, STORED)

    assert str(status) in caught.value.message
    assert [seen.header("authorization") is not None for seen in server.seen] == [True, False][:count]
    assert ["client_secret" in parse_qs(seen.body.decode()) for seen in server.seen] == [False, True][:count]


async def test_a_token_that_came_after_the_refused_one_is_kept() -> None:
    """Ours: of many calls that lose one token at once, one buys the next (OAS-2)."""
    async with endpoint() as (server, tokens, security):
        grant(server, "first")
        sent = await tokens.exchange(ACME, SOURCE, security, STORED)
        grant(server, "second")
        values: list[str] = []
        for _ in range(3):
            await tokens.forget(ACME, SOURCE, security, STORED, refused=sent)
            values.append((await tokens.exchange(ACME, SOURCE, security, STORED))["oauth"].value)

    assert values == ["second"] * 3
    assert len(server.seen) == 2
