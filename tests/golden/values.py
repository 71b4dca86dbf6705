"""The stored values of commit 79130e09: rows of every kind, with the entity tags, cursors and secrets of that time."""

import json
from pathlib import Path
from typing import Any, cast

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import create_async_engine

from gateway.store.database.connection import PostgresConnection, connect_owner
from gateway.store.database.migrations import migrate
from tests.support.servers import TestDatabase
from tests.surface.canonical import Json

SCHEMA = "0042"
"""The last migration of that commit."""
FILE = Path(__file__).parent / "values-79130e09.json"
KEYS = "/tenants/acme/keys"
REPEATED = "golden-key"
"""The `Idempotency-Key` with which the first key was created."""
_MIGRATIONS = Path(__file__).parents[2] / "migrations"
_INSERT = 'insert into "{table}" select (jsonb_populate_recordset(null::"{table}", $1::jsonb)).*'


def load() -> Json:
    """Return the content of the file."""
    return cast("Json", json.loads(FILE.read_text()))


async def restore(database: TestDatabase) -> None:
    """Give an empty database the schema and the rows of that commit, then the migrations of this tree.

    The server has the roles of the gateway already: it has migrated another database.
    """
    await _make_schema(database)
    connection = await connect_owner(database.superuser_url)
    try:
        await connection.execute("set session_replication_role = replica")  # rows in any order
        for table, rows in load()["rows"].items():
            await connection.execute(f'delete from "{table}"')
            await connection.execute(_INSERT.format(table=table), json.dumps(rows))
    finally:
        await connection.close()
    await migrate(database.owner_url)


async def _make_schema(database: TestDatabase) -> None:
    async def connect(*_: object, **__: object) -> PostgresConnection:
        return await connect_owner(database.owner_url)

    def upgrade(sync: Connection) -> None:
        applied: list[str] = []
        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS))
        config.set_main_option("path_separator", "os")
        attributes: dict[str, Any] = {"connection": sync, "applied": applied}
        config.attributes.update(attributes)
        command.upgrade(config, SCHEMA)
        assert applied[-1] == SCHEMA

    engine = create_async_engine("postgresql+asyncpg://", connect_args={"async_creator_fn": connect})
    async with engine.connect() as connection:
        await connection.run_sync(upgrade)
        await connection.commit()
    await engine.dispose()
