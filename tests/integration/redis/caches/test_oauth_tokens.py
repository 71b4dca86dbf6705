"""Shared access tokens in a real Redis: sealed, apart, and only one fetching at a time."""

import time
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from gateway.domain.http.requests import AccessToken
from gateway.domain.identifiers import TenantId
from gateway.redis.caches.oauth_tokens import SharedTokens
from gateway.redis.event_bus import EventBus

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
SECRET = b"0123456789abcdef0123456789abcdef"


def _token(value: str = "tok-secret", *, life_s: float = 60.0) -> AccessToken:
    return AccessToken(value=value, expires_at=time.time() + life_s, life_s=life_s)


@pytest.fixture
async def bus(redis_url: str) -> AsyncGenerator[EventBus]:
    """One replica's end of the bus."""
    async with EventBus(redis_url, secret=SECRET) as opened:
        yield opened


async def test_a_token_is_found_where_it_was_put_and_nowhere_else(bus: EventBus) -> None:
    """Ours: the tenant is part of the place (TEN-4)."""
    tokens, kept = SharedTokens(bus, secret=SECRET), _token()
    await tokens.put(ACME, "place", kept)

    assert await tokens.get(ACME, "place") == kept
    assert await tokens.get(GLOBEX, "place") is None
    assert await tokens.get(ACME, "other") is None

    await tokens.drop(ACME, "place")
    assert await tokens.get(ACME, "place") is None


async def test_redis_sees_neither_token_nor_place(bus: EventBus, raw: Any) -> None:
    """Ours: a reader of Redis learns no token and can test no guess of a client secret (TEN-4)."""
    await SharedTokens(bus, secret=SECRET).put(ACME, "place", _token())
    [key] = [key async for key in raw.scan_iter(match="*token*")]

    assert b"place" not in key
    assert b"tok-secret" not in await raw.get(key)
    assert 0 < await raw.pttl(key) <= 60_000


async def test_a_foreign_cache_entry_is_no_token(bus: EventBus, raw: Any) -> None:
    """Ours: a writer to Redis cannot choose the token that is sent."""
    tokens = SharedTokens(bus, secret=SECRET)
    await tokens.put(ACME, "one", _token("tok-one"))
    [key] = [key async for key in raw.scan_iter(match="*token*")]
    sealed = await raw.get(key)
    await tokens.put(ACME, "two", _token("tok-two"))
    [other] = [found async for found in raw.scan_iter(match="*token*") if found != key]
    await raw.set(other, sealed)
    await raw.set(key, b'{"value":"evil","expires_at":9e9,"life_s":1}')

    assert await tokens.get(ACME, "one") is None
    assert await tokens.get(ACME, "two") is None


async def test_a_token_that_has_ended_is_not_kept(bus: EventBus, raw: Any) -> None:
    """Ours: nothing without an end is left in Redis."""
    await SharedTokens(bus, secret=SECRET).put(ACME, "place", _token(life_s=-1))

    assert [key async for key in raw.scan_iter(match="*token*")] == []


async def test_only_one_holds_the_lock(bus: EventBus) -> None:
    """Ours: the next one goes on when the first is done."""
    tokens, order = SharedTokens(bus, secret=SECRET), list[str]()
    first_is_in = anyio.Event()

    async def second() -> None:
        await first_is_in.wait()
        async with tokens.lock(ACME, "place"):
            order.append("second")

    async with anyio.create_task_group() as group:
        group.start_soon(second)
        async with tokens.lock(ACME, "place"):
            first_is_in.set()
            async with tokens.lock(ACME, "elsewhere"), tokens.lock(GLOBEX, "place"):
                order.append("first")

    assert order == ["first", "second"]
