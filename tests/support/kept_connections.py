"""Connections of the superuser that this process keeps, one for each database.

A new connection costs PostgreSQL 3 to 25 ms of CPU, most of a statement's price: it reads the catalog and plans again.
The connections live on an event loop of their own, so code on any loop, and on none, may use them.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from functools import cache
from typing import TypeVar

import asyncpg

from gateway.store.database.connection import PostgresConnection, connect_owner

_Result = TypeVar("_Result")

KEPT = "kept"
"""The name by which `pg_stat_activity` shows them."""


async def execute(url: str, statement: str) -> None:
    """Run one statement, or several in one transaction, on the kept connection."""
    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_execute(url, statement), _loop_apart()))


async def forget(url: str) -> None:
    """Close the kept connection, on its own loop."""
    if (connection := _kept().pop(url, None)) is not None:
        await connection.close()


async def is_alive(connection: PostgresConnection) -> bool:
    """True if the server has not ended the connection."""
    try:
        await connection.execute("select 1")
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        connection.terminate()
        return False
    return True


def run_apart(coroutine: Coroutine[object, object, _Result]) -> _Result:
    """Run a coroutine to its end from synchronous code, whether or not a loop runs in this thread."""
    return asyncio.run_coroutine_threadsafe(coroutine, _loop_apart()).result()


async def _execute(url: str, statement: str) -> None:
    async with _lent(url) as connection:
        await connection.execute(statement)


@asynccontextmanager
async def _lent(url: str) -> AsyncGenerator[PostgresConnection]:
    """The kept connection, or a new one if a test has ended it, or while another statement runs on it."""
    connection = _kept().pop(url, None)
    if connection is None or not await is_alive(connection):
        connection = await connect_owner(url)
        await connection.execute(f"set application_name = {KEPT}")
    try:
        yield connection
    except asyncio.CancelledError:
        connection.terminate()
        raise
    finally:
        if connection.is_closed() or connection.is_in_transaction() or url in _kept():
            connection.terminate()
        else:
            _kept()[url] = connection


@cache
def _kept() -> dict[str, PostgresConnection]:
    """Kept connections by URL."""
    return {}


@cache
def _loop_apart() -> asyncio.AbstractEventLoop:
    """One loop for all of them, in a thread that ends with this process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="run_apart", daemon=True).start()
    return loop
