"""Open streams, as the limiter counts them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from gateway.domain.identifiers import KeyId, TenantId
from gateway.redis.limits.stream_limiter import StreamLimiter


@asynccontextmanager
async def open_stream(places: StreamLimiter, tenant: TenantId, key: KeyId, cap: int) -> AsyncGenerator[None]:
    """A stream that is counted while the block runs, or LimitExceeded."""
    place = await places.acquire(tenant, key, cap)
    try:
        yield
    finally:
        await places.release(tenant, key, place)
