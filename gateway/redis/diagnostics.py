"""Diagnosis of a Redis server: version, clock, persistence, memory limit and role."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from redis.asyncio import ConnectionPool, Redis

from gateway.domain.tenancy.configured_secret import ConfiguredSecret, as_configured
from gateway.redis.client import redis_errors_translated
from gateway.redis.limits.limits import DIAGNOSIS_S
from gateway.redis.servers import read_servers


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisFacts:
    """The state of a Redis server when it was examined."""

    version: str
    number: tuple[int, int]
    clock_skew_s: float
    keeps_log: bool
    """True if it has an append-only file."""
    log_is_written: bool
    max_bytes: int
    eviction: str
    is_replica: bool


async def examine_redis(url: str | ConfiguredSecret) -> RedisFacts:
    """Read the facts on a separate connection.

    Raises:
        RedisUnavailable: Redis is not reachable, or refuses the login or a command.
    """
    with redis_errors_translated():
        servers = read_servers(as_configured(url).value)
        opened = servers.pool(ConnectionPool, command_s=DIAGNOSIS_S, connect_s=DIAGNOSIS_S)
        client: Any = cast(Any, Redis)(connection_pool=opened.pool)
        try:
            sent_at = time.time()
            seconds, micros = await client.time()
            answered_at = time.time()
            info: Mapping[str, object] = await client.info()
        finally:
            await client.aclose()
            await opened.close()
    return RedisFacts(
        version=str(info.get("redis_version", "unknown")),
        number=_number(str(info.get("redis_version", ""))),
        clock_skew_s=seconds + micros / 1e6 - (sent_at + answered_at) / 2,
        keeps_log=info.get("aof_enabled") == 1,
        log_is_written=info.get("aof_last_write_status") == "ok",
        max_bytes=int(str(info.get("maxmemory", 0))),
        eviction=str(info.get("maxmemory_policy", "unknown")),
        is_replica=info.get("role") != "master",
    )


def _number(version: str) -> tuple[int, int]:
    parts = [int(part) if part.isdigit() else 0 for part in version.split(".")]
    return (parts[0], parts[1]) if len(parts) > 1 else (0, 0)
