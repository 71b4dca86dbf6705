"""SQLAlchemy's dialect for asyncpg, with a cheaper check of pooled connections."""

from typing import Final

import asyncpg
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.util import await_only

from gateway.store.database.errors import CONNECTION_ERRORS

URL: Final = "postgresql+gateway://"
"""Engine URL of the dialect. It names no database, because the store connects by itself."""


class GatewayDialect(PGDialect_asyncpg):
    """The dialect of asyncpg, which checks a connection with one simple query.

    SQLAlchemy's check begins a transaction and runs a prepared statement in it: three round trips before each
    transaction of the gateway.
    """

    supports_statement_cache = True  # each class needs it: without it, SQLAlchemy compiles every statement again

    # The base returns True or raises.
    def do_ping(self, dbapi_connection: DBAPIConnection) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        """False if the connection is lost; the pool then replaces it and all older ones.

        Raises:
            TimeoutError: the server does not respond.
        """
        try:
            await_only(dbapi_connection.driver_connection.execute("select 1"))
        except TimeoutError:
            raise
        except (asyncpg.PostgresError, asyncpg.InterfaceError, *CONNECTION_ERRORS):
            return False
        return True


registry.register("postgresql.gateway", __name__, GatewayDialect.__name__)
