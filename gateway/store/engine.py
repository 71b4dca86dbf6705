"""The store: transactions that see one tenant, and the checks before it may serve.

Every connection runs as `gateway_app`, which owns nothing and cannot bypass row-level security. A caller with a
fallback passes `within_s`, the deadline for starting the transaction. While the circuit breaker is open, such a caller
is refused at once.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Literal, Self

from sqlalchemy import exc, text
from sqlalchemy.ext.asyncio.engine import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import QueuePool

from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.errors import DatabaseUnavailable, LimitExceeded, NotFound
from gateway.store.database.circuit_breaker import DatabaseBreaker, bounded_wait
from gateway.store.database.connection import PostgresConnection, connect_app
from gateway.store.database.dialect import CHECK, URL, begin_at_checkout, begun_by
from gateway.store.database.errors import read_only, translate_engine_errors
from gateway.store.database.limits import RETRY_S
from gateway.store.database.poolers import refuse_transaction_pooler
from gateway.store.limits import MAX_QUEUED_TRANSACTIONS
from gateway.store.tables import SCHEMA

Db = AsyncConnection
"""An open transaction, which the functions of the store's modules receive."""

Level = Literal["READ COMMITTED", "REPEATABLE READ"]
"""Isolation level of a transaction."""

_IS_READ_ONLY = text("select pg_is_in_recovery() or current_setting('transaction_read_only')::bool")
_SET_TENANT = "select set_config('app.tenant', '{}', true)"  # guard: tenant-of-the-transaction


class Store:
    """The connection pool for PostgreSQL.

    A transaction waits up to `timeout_s` for a slot of its tenant's share, then up to `timeout_s` for a connection.
    """

    def __init__(
        self,
        url: str | ConfiguredSecret,
        *,
        pool_size: int = 8,
        timeout_s: float = 5.0,
        silence: DatabaseBreaker | None = None,
    ) -> None:
        self._url = url
        self._pool_size = pool_size
        self._timeout_s = timeout_s
        self.slot_pool = FairSlotPool(
            "connections to PostgreSQL", slots=pool_size, queue=MAX_QUEUED_TRANSACTIONS, timeout_s=timeout_s
        )
        """Bulkhead for transactions of tenants. `upkeep` and `unscoped` transactions do not take its slots."""
        self._breaker = DatabaseBreaker() if silence is None else silence
        self._stack = AsyncExitStack()
        self._engine: AsyncEngine | None = None

    async def __aenter__(self) -> Self:
        async def connect(*_: object, **__: object) -> PostgresConnection:
            return await connect_app(self._url)

        engine = create_async_engine(
            URL,
            connect_args={"async_creator_fn": connect},
            pool_size=self._pool_size,
            max_overflow=0,
            pool_timeout=self._timeout_s,
            isolation_level="AUTOCOMMIT",
            pool_use_lifo=True,
            hide_parameters=True,
        )
        begin_at_checkout(engine, self._breaker)
        translate_engine_errors(engine, self._breaker.replace_connections)
        self._stack.push_async_callback(engine.dispose)
        self._engine = engine
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine = None
        await self._stack.aclose()

    def transaction(self, tenant: TenantId, *, within_s: float | None = None) -> AbstractAsyncContextManager[Db]:
        """One transaction that sees and writes only this tenant's rows; commits on a clean exit.

        Raises:
            DatabaseUnavailable: PostgreSQL does not respond in time, no connection is free, or the breaker is open.
        """
        return self._transaction(tenant, party=tenant, within_s=within_s)

    def reading(self, tenant: TenantId, *, within_s: float | None = None) -> AbstractAsyncContextManager[Db]:
        """One `REPEATABLE READ` transaction of the tenant: all its queries see the same snapshot of the data.

        Raises:
            DatabaseUnavailable: PostgreSQL does not respond in time, no connection is free, or the breaker is open.
        """
        return self._transaction(tenant, party=tenant, level="REPEATABLE READ", within_s=within_s)

    def upkeep(self, tenant: TenantId) -> AbstractAsyncContextManager[Db]:
        """One transaction of background work for a tenant, such as signing; it takes no slot of the tenant's share.

        Such work visits one tenant after another, so a tenant that has used up its share must not delay it.

        Raises:
            DatabaseUnavailable: PostgreSQL does not respond, or no connection is free.
        """
        return self._transaction(tenant, party=None)

    def unscoped(self, *, within_s: float | None = None) -> AbstractAsyncContextManager[Db]:
        """One transaction that sees no tenant, for the SQL functions that bypass row-level security.

        Raises:
            DatabaseUnavailable: PostgreSQL does not respond in time, no connection is free, or the breaker is open.
        """
        return self._transaction(None, party=None, within_s=within_s)

    def lookup(self, *, within_s: float | None = None) -> AbstractAsyncContextManager[Db]:
        """A connection for single statements without a transaction, which see no tenant: one round trip each.

        Raises:
            DatabaseUnavailable: PostgreSQL does not respond in time, no connection is free, or the breaker is open.
        """
        return self._transaction(None, party=None, level=None, within_s=within_s)

    async def check(self) -> None:
        """Refuse to serve unless the database is reachable, the role is safe and the schema is migrated.

        A schema newer than this code is accepted, so that old replicas keep serving during a rollout.

        Raises:
            DatabaseUnavailable: one of these conditions is not met.
        """
        async with self._transaction(None, party=None) as db:
            found = (await db.execute(text("select max(version_num) from alembic_version"))).scalar_one()
        if not isinstance(found, str) or found < SCHEMA:
            raise DatabaseUnavailable(
                f"The database is at migration {found or 'none'}, but this gateway needs {SCHEMA}: run `gateway "
                f"migrate`."
            )

    async def check_sessions(self) -> None:
        """Refuse to serve behind a pooler that gives each transaction another session.

        Raises:
            BrokenSetting: such a pooler is in between.
            DatabaseUnavailable: PostgreSQL does not respond.
        """
        await refuse_transaction_pooler(self._url)

    async def check_writes(self) -> None:
        """Check that PostgreSQL accepts writes, without a write.

        Raises:
            DatabaseUnavailable: it does not respond, is a standby, or is set read-only.
        """
        async with self.lookup() as db:
            if (await db.execute(_IS_READ_ONLY)).scalar_one():
                self._breaker.replace_connections()
                raise read_only()

    def replace_connections(self) -> None:
        """Replace every connection at its next use, for example after a change of the URL."""
        self._breaker.replace_connections()

    async def unsealed_until(self) -> float:
        """Time in seconds since 1970 until which replicas of the previous release may store Redis state without a MAC.

        Raises:
            DatabaseUnavailable: PostgreSQL does not respond.
        """
        async with self._transaction(None, party=None) as db:
            return float((await db.execute(text("select unsealed_until()"))).scalar_one())

    @asynccontextmanager
    async def _transaction(
        self,
        tenant: TenantId | None,
        *,
        party: TenantId | None,
        level: Level | None = "READ COMMITTED",
        within_s: float | None = None,
    ) -> AsyncGenerator[Db]:
        """One transaction that sees `tenant`, or no tenant; it takes a slot of the share of `party`, if given.

        Without a level, there is no transaction.
        """
        if self._engine is None:
            raise DatabaseUnavailable("The store is not open.")
        db = self._engine.connect()
        try:
            async with self._share(party, within_s):  # guard: share-of-postgresql
                try:
                    if within_s is None:
                        with _translated_timeout():
                            await _begin(db, _first_statement(tenant, level))
                    else:
                        await self._begin_within(within_s, db, _first_statement(tenant, level) or CHECK)
                    yield db
                    await db.commit()
                finally:
                    if db.sync_connection is not None:  # the transaction has begun
                        await db.__aexit__(None, None, None)  # runs to its end even if this task is cancelled
        except exc.TimeoutError:
            raise DatabaseUnavailable(
                "All connections to PostgreSQL are in use; retry later.", retry_after_s=RETRY_S
            ) from None

    @asynccontextmanager
    async def _share(self, party: TenantId | None, within_s: float | None) -> AsyncGenerator[None]:
        """Hold one slot of the party's share while the block runs; without a party, do nothing."""
        if party is None:
            yield
            return
        if not self.slot_pool.try_take(party):
            try:
                async with asyncio.timeout(within_s):
                    await self.slot_pool.take(party)
            except (LimitExceeded, TimeoutError):
                raise DatabaseUnavailable(
                    f"The tenant uses its share of the connections to PostgreSQL ({self.slot_pool.share} of "
                    f"{self.slot_pool.slots} per replica), or all are in use; retry later.",
                    retry_after_s=RETRY_S,
                ) from None
        try:
            yield
        finally:
            self.slot_pool.free(party)

    async def _begin_within(self, seconds: float, db: Db, statement: str) -> None:
        if not self._breaker.may_ask():
            raise _not_responding()
        try:
            async with bounded_wait(seconds):
                await _begin(db, statement)
        except TimeoutError:
            if self._is_exhausted:
                raise exc.TimeoutError from None
            self._breaker.note()
            raise _not_responding() from None
        except DatabaseUnavailable:
            self._breaker.end()  # PostgreSQL has responded
            raise
        self._breaker.end()

    @property
    def _is_exhausted(self) -> bool:
        """True if other transactions hold all connections."""
        pool = None if self._engine is None else self._engine.pool
        return isinstance(pool, QueuePool) and pool.checkedout() >= self._pool_size


async def _begin(db: Db, statement: str | None) -> None:
    """Take a live connection, which has executed the statement."""
    try:
        with begun_by(statement):
            await db.start()
    except exc.InvalidRequestError:  # the connection was lost, and so was its replacement
        raise _not_responding() from None


def _first_statement(tenant: TenantId | None, level: Level | None) -> str | None:
    """The statement that starts a transaction and sets its tenant; None without a level."""
    if level is None:
        return None
    begin = f"begin isolation level {level}"
    return begin if tenant is None else f"{begin}; {_SET_TENANT.format(_literal(tenant))}"


def _literal(tenant: TenantId) -> str:
    """The id for a statement without parameters.

    Raises:
        NotFound: it has a character other than a letter, a digit, `_` and `-`, so it is the id of no tenant.
    """
    if not tenant.isascii() or not tenant.replace("_", "").replace("-", "").isalnum():  # guard: tenant-is-an-id
        raise NotFound("no such tenant")
    return tenant


@asynccontextmanager
async def scoped(db: Db, tenant: TenantId, *, back_to: TenantId) -> AsyncGenerator[None]:
    """Run the block in the same transaction as another tenant: row-level security shows only the rows of that one."""
    await db.execute(text(_SET_TENANT.format(_literal(tenant))))
    yield
    await db.execute(text(_SET_TENANT.format(_literal(back_to))))  # after an error, the transaction ends


@contextmanager
def _translated_timeout() -> Generator[None]:
    """Translate the timeout of the check of a pooled connection, a driver error that SQLAlchemy does not wrap."""
    try:
        yield
    except TimeoutError:
        raise _not_responding() from None


def _not_responding() -> DatabaseUnavailable:
    return DatabaseUnavailable("PostgreSQL does not respond.", retry_after_s=RETRY_S)
