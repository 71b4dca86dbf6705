"""Detection of a connection pooler in transaction mode, behind which the store cannot work.

Such a pooler gives each transaction another session of PostgreSQL. Prepared statements and settings of a session are
then missing, or those of other clients: also the tenant that a session sees. Poolers in session mode are no hindrance.
"""

from contextlib import AsyncExitStack
from typing import Final

import asyncpg
import structlog

from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.errors import BrokenSetting
from gateway.store.database.connection import PostgresConnection, connect_app
from gateway.store.database.errors import CONNECTION_ERRORS, is_session_lost, translate_connect_error

log = structlog.get_logger(__name__)

_PID: Final = "select pg_backend_pid()"
_ROUNDS: Final = 3


async def refuse_transaction_pooler(url: str | ConfiguredSecret) -> None:
    """Check that each connection keeps its session of PostgreSQL.

    A pooler announces another process than the one that runs the statements. Only then a second connection is opened:
    in transaction mode it gets the session of the first, or the first one gets another while the second holds its own.

    Raises:
        BrokenSetting: a pooler in transaction mode is in between.
        DatabaseUnavailable: PostgreSQL does not respond.
    """
    async with AsyncExitStack() as stack:
        first = await connect_app(url)
        stack.callback(first.terminate)
        try:
            if first.get_server_pid() == await first.fetchval(_PID):
                return
            second = await connect_app(url)
            stack.callback(second.terminate)
            is_shared = any([await _is_shared(first, second) for _ in range(_ROUNDS)])
        except (asyncpg.PostgresError, *CONNECTION_ERRORS) as error:
            if not is_session_lost(error):
                raise translate_connect_error(error) from None
            is_shared = True
    if is_shared:  # guard: no-transaction-pooler
        raise BrokenSetting(
            "GATEWAY_DATABASE_URL: a pooler in transaction mode is in front of PostgreSQL, where sessions do not keep "
            "their prepared statements and settings; use its session mode, or connect to PostgreSQL itself"
        )
    log.info("database_pooler_found")


async def _is_shared(first: PostgresConnection, second: PostgresConnection) -> bool:
    """True if sessions move between the connections."""
    before = await first.fetchval(_PID)
    await second.execute("begin")
    try:
        if await second.fetchval(_PID) == before:
            return True
        return await first.fetchval(_PID) != before
    finally:
        await second.execute("rollback")
