"""PostgreSQL and Redis of a gateway: configured servers, or embedded ones that stop with the gateway."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gateway.embedded.servers import EmbeddedServers
from gateway.errors import BrokenSetting
from gateway.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """The URLs of PostgreSQL and Redis; `is_embedded` is true if the gateway started them."""

    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    is_embedded: bool


@asynccontextmanager
async def open_backends(settings: Settings) -> AsyncGenerator[Backends]:
    """Yield the configured servers; if neither is configured, start embedded ones and migrate the database.

    Raises:
        BrokenSetting: only PostgreSQL or only Redis is configured.
        EmbeddedServerFailed: an embedded server did not start.
        DatabaseUnavailable: the embedded database could not be migrated.
    """
    database, redis = settings.database_url, settings.redis_url
    if database is not None and redis is not None:
        yield Backends(database_url=database.get_secret_value(), redis_url=redis.get_secret_value(), is_embedded=False)
        return
    if database is not None or redis is not None:
        missing = "GATEWAY_REDIS_URL" if redis is None else "GATEWAY_DATABASE_URL"
        raise BrokenSetting(f"{missing}: set both server URLs, or neither to have both started")
    # Alembic and its own imports: 105 modules that a replica with configured servers does not need.
    from gateway.store.database.migrations import migrate  # noqa: PLC0415

    async with EmbeddedServers(settings.data_dir) as urls:
        await migrate(urls.migration_database_url)
        yield Backends(database_url=urls.database_url, redis_url=urls.redis_url, is_embedded=True)
