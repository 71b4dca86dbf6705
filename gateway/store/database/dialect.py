"""SQLAlchemy's dialect for asyncpg, with a transaction that begins when its connection leaves the pool.

One simple query checks the connection, begins the transaction and sets its tenant. SQLAlchemy would send a check, a
BEGIN and a statement for the tenant: two more round trips in each transaction, most of which have one statement.
Without a transaction, a connection is checked if it has not been for a second, or if the server has closed it.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, cast

import asyncpg
from sqlalchemy import Connection, event, exc
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio.engine import AsyncEngine
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection
from sqlalchemy.util import await_only

from gateway.store.database.circuit_breaker import DatabaseBreaker
from gateway.store.database.connection import PostgresConnection
from gateway.store.database.errors import CONNECTION_ERRORS
from gateway.store.database.limits import CHECK_S

URL: Final = "postgresql+gateway://"
"""Engine URL of the dialect. It names no database, because the store connects by itself."""

CHECK = "select 1"
_CHECKED_AT = "checked_at"
_GENERATION = "generation"

_begin_statement: ContextVar[str | None] = ContextVar("begin_statement")


class GatewayDialect(PGDialect_asyncpg):
    """The dialect of asyncpg for connections in autocommit mode, whose transaction is begun by `begin_at_checkout`.

    A new connection costs no queries of the dialect: types of JSON decode their own text, and the version and settings
    of the server matter only to statements that the store does not use.
    """

    supports_statement_cache = True  # each class needs it: without it, SQLAlchemy compiles every statement again
    supports_native_json_deserialization = False  # with codecs of the driver: two queries per connection

    def initialize(self, connection: Connection) -> None:
        """Ask the server nothing: its schema is not reflected, and no statement depends on its version."""

    def on_connect(self) -> Any:
        """None: connections need no codecs."""
        return None

    def do_commit(self, dbapi_connection: PoolProxiedConnection) -> None:
        """Commit the transaction, if one is open."""
        driver = _driver(dbapi_connection)
        if driver.is_in_transaction():
            await_only(driver.execute("commit"))

    def do_rollback(self, dbapi_connection: PoolProxiedConnection) -> None:
        """Roll back the transaction, if one is open; the pool calls this for every connection that returns."""
        driver = _driver(dbapi_connection)
        if driver.is_in_transaction():  # guard: transaction-rolled-back
            await_only(driver.execute("rollback"))


def _driver(connection: PoolProxiedConnection) -> PostgresConnection:
    return cast("PostgresConnection", connection.driver_connection)


@contextmanager
def begun_by(statement: str | None) -> Generator[None]:
    """Let a connection that leaves the pool in this block begin a transaction with this statement; None begins none."""
    token = _begin_statement.set(statement)
    try:
        yield
    finally:
        _begin_statement.reset(token)


def begin_at_checkout(engine: AsyncEngine, breaker: DatabaseBreaker) -> None:
    """Make each connection that leaves the pool run the statement of `begun_by`.

    A connection that was lost meanwhile, or is of an older generation, is replaced, and so are all older ones.
    `TimeoutError` passes.
    """

    def mark(_: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        record.info[_GENERATION] = breaker.generation

    def begin(dbapi_connection: DBAPIConnection, record: ConnectionPoolEntry, _: object) -> None:
        if record.info[_GENERATION] != breaker.generation:
            raise exc.InvalidatePoolError
        _begin(dbapi_connection, record)

    event.listen(engine.sync_engine, "connect", mark)
    event.listen(engine.sync_engine, "checkout", begin)


def _begin(dbapi_connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
    statement, now = _begin_statement.get(), time.monotonic()
    driver: PostgresConnection = dbapi_connection.driver_connection
    is_checked = now < record.info.get(_CHECKED_AT, 0.0) + CHECK_S and not driver.is_closed()
    if statement is None and is_checked:
        return
    try:
        await_only(driver.execute(statement or CHECK))
    except TimeoutError:
        raise
    except (asyncpg.PostgresError, asyncpg.InterfaceError, *CONNECTION_ERRORS) as error:
        raise exc.InvalidatePoolError from error
    record.info[_CHECKED_AT] = now


registry.register("postgresql.gateway", __name__, GatewayDialect.__name__)
