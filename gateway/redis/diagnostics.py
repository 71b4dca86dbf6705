"""Diagnosis of a Redis server: the facts that decide if sessions and limits survive a restart and a full memory."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from gateway.redis.client import translated

_PATIENCE_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisFacts:
    """The facts about one Redis server at this moment."""

    version: str
    number: tuple[int, int]
    clock_skew_s: float
    keeps_log: bool
    """True if it has an append-only file."""
    log_is_written: bool
    max_bytes: int
    eviction: str
    is_replica: bool


async def examine_redis(url: str) -> RedisFacts:
    """Read the facts on a separate connection.

    Raises:
        RedisUnavailable: Redis is not reachable, or refuses the login.
    """
    with translated():
        client: Any = cast(Any, Redis).from_url(
            url,
            protocol=2,
            socket_timeout=_PATIENCE_S,
            socket_connect_timeout=_PATIENCE_S,
            retry=Retry(NoBackoff(), 0),
        )
        try:
            asked = time.time()
            seconds, micros = await client.time()
            heard = time.time()
            told: Mapping[str, object] = await client.info()
        finally:
            await client.aclose()
    return RedisFacts(
        version=str(told.get("redis_version", "unknown")),
        number=_number(str(told.get("redis_version", ""))),
        clock_skew_s=seconds + micros / 1e6 - (asked + heard) / 2,
        keeps_log=told.get("aof_enabled") == 1,
        log_is_written=told.get("aof_last_write_status") == "ok",
        max_bytes=int(str(told.get("maxmemory", 0))),
        eviction=str(told.get("maxmemory_policy", "unknown")),
        is_replica=told.get("role") != "master",
    )


def _number(version: str) -> tuple[int, int]:
    parts = [int(part) if part.isdigit() else 0 for part in version.split(".")]
    return (parts[0], parts[1]) if len(parts) > 1 else (0, 0)
