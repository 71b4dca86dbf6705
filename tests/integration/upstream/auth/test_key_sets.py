"""Signing keys of issuers over the guarded client: how often they are fetched, and what is used meanwhile."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import orjson
import pytest

from gateway.domain.identifiers import TenantId
from gateway.errors import EgressDenied, FetchFailed, Unavailable
from gateway.upstream.auth.key_sets import KeySets, discover, fetch_key_set
from gateway.upstream.client import UpstreamClient
from tests.support.upstream import RecordingUpstream, recording_upstream

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
KEY = {"kty": "EC", "kid": "k"}


@asynccontextmanager
async def _sets() -> AsyncGenerator[tuple[RecordingUpstream, UpstreamClient, KeySets]]:
    """A set with one key, and a client that may fetch it."""
    async with recording_upstream() as server, UpstreamClient(egress_allow=[server.authority]) as client:
        server.body = orjson.dumps({"keys": [KEY]})
        yield server, client, KeySets(client)


async def test_a_set_is_fetched_once_for_each_tenant() -> None:
    """Ours: a hundred requests are one fetch; no tenant sees the cache of another (ISO-1)."""
    async with _sets() as (server, _, sets):
        async with anyio.create_task_group() as group:
            for _ in range(60):
                group.start_soon(sets.find, ACME, server.url, "k")
        assert len(server.seen) == 1
        assert await sets.find(GLOBEX, server.url, None) == (KEY,)
        assert len(server.seen) == 2


async def test_unknown_key_ids_fetch_at_a_bounded_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: made-up key ids cost the issuer a request in 30 seconds; a new key is found then (TEN-2)."""
    async with _sets() as (server, _, sets):
        for kid in ("k", "x", "y", "z"):
            assert list(await sets.find(ACME, server.url, kid)) == ([KEY] if kid == "k" else [])
        assert len(server.seen) == 1
        server.body = orjson.dumps({"keys": [KEY, {"kty": "EC", "kid": "x"}]})
        started = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: started + 31)
        assert list(await sets.find(ACME, server.url, "x")) == [{"kty": "EC", "kid": "x"}]
        assert list(await sets.find(ACME, server.url, "y")) == []
        assert len(server.seen) == 2


async def test_a_set_outlasts_an_issuer_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a failed fetch keeps the last set for an hour; without one, sign-in waits for the issuer (TEN-2)."""
    async with _sets() as (server, _, sets):
        await sets.find(ACME, server.url, "k")
        server.status = 503
        started = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: started + 3500)
        assert list(await sets.find(ACME, server.url, "k")) == [KEY]
        with pytest.raises(Unavailable):
            await sets.find(GLOBEX, server.url, "k")
        monkeypatch.setattr(time, "monotonic", lambda: started + 3700)
        with pytest.raises(Unavailable):
            await sets.find(ACME, server.url, "k")


async def test_a_set_belongs_to_one_state_of_its_issuer() -> None:
    """Ours: after a change of the issuer no older set is used; the set that the change fetched is (TEN-2)."""
    async with _sets() as (server, _, sets):
        await sets.find(ACME, server.url, "k", state="iss_a/1")
        server.body = orjson.dumps({"keys": []})
        assert list(await sets.find(ACME, server.url, "k", state="iss_a/1")) == [KEY]
        assert list(await sets.find(ACME, server.url, "k", state="iss_a/2")) == []
        sets.put(ACME, server.url, (KEY,), state="iss_a/3")
        assert list(await sets.find(ACME, server.url, "k", state="iss_a/3")) == [KEY]
        assert len(server.seen) == 2


async def test_a_set_is_used_while_its_issuer_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: one request waits for the new set; others, however many, use the last one meanwhile (TEN-2, ISO-6)."""
    async with _sets() as (server, _, sets):
        await sets.find(ACME, server.url, "k")
        server.arrived.clear()
        gate = server.gate = anyio.Event()  # type: ignore[assignment]  # only `set` and `wait` are used
        started = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: started + 601)
        async with anyio.create_task_group() as group:
            group.start_soon(sets.find, ACME, server.url, "k")
            with anyio.fail_after(5):
                await server.arrived.wait()
                assert [await sets.find(ACME, server.url, "k") for _ in range(100)] == [[KEY]] * 100
            gate.set()
        assert len(server.seen) == 2


async def test_requests_that_wait_for_a_set_are_bounded() -> None:
    """Ours: an issuer that does not answer delays few requests; others get a retry hint (ISO-6)."""
    async with _sets() as (server, _, sets):
        gate = server.gate = anyio.Event()  # type: ignore[assignment]  # only `set` and `wait` are used
        refused: list[str] = []

        async def find() -> None:
            try:
                await sets.find(ACME, server.url, "k")
            except Unavailable as error:
                refused.append(error.message)

        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(find)
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(10):
                await server.arrived.wait()
            gate.set()

        assert 30 <= len(refused) <= 40
        assert len(server.seen) == 1


@pytest.mark.parametrize(
    "body", [b"[]", b"{}", b'{"keys":{}}', b"\xff", b"[" * 100_000, orjson.dumps({"keys": [KEY] * 101})]
)
async def test_a_document_that_is_no_key_set_is_refused(body: bytes) -> None:
    """Ours: a document of another kind, a deep one and one with too many keys are none (TEN-2)."""
    async with _sets() as (server, client, _):
        server.body = body
        with pytest.raises(FetchFailed):
            await fetch_key_set(client, ACME, server.url)


async def test_metadata_belong_to_the_queried_issuer() -> None:
    """RFC 8414 §3.3: else one issuer's tokens would be verified with another's keys (TEN-2)."""
    async with _sets() as (server, client, _):
        for claimed, path in ((server.url, ""), (f"{server.url}/realms/a", "/realms/a")):
            server.body = orjson.dumps({"issuer": claimed, "jwks_uri": "https://login.example/keys"})
            assert await discover(client, ACME, server.url + path) == "https://login.example/keys"
        with pytest.raises(FetchFailed, match="another issuer"):
            await discover(client, ACME, server.url)
        server.status = 404
        with pytest.raises(FetchFailed):
            await discover(client, ACME, f"{server.url}/realms/a")
        assert [seen.target for seen in server.seen[-2:]] == [
            "/.well-known/oauth-authorization-server/realms/a",
            "/realms/a/.well-known/openid-configuration",
        ]


async def test_keys_are_fetched_through_the_egress_guard() -> None:
    """Ours: the URL of an issuer or of its keys reaches no inner network (ISO-4)."""
    async with recording_upstream() as server, UpstreamClient(egress_allow=[]) as client:
        with pytest.raises(EgressDenied):
            await fetch_key_set(client, ACME, server.url)
        with pytest.raises(FetchFailed):
            await discover(client, ACME, server.url)
        with pytest.raises(Unavailable):
            await KeySets(client).find(ACME, server.url, None)
        assert server.seen == []
