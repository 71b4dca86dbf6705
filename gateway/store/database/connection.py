"""Connections to PostgreSQL, under the role `gateway_app` or under the login itself.

Only this module passes a database URL to the driver. The driver has no type stubs, so the members in use are declared
here.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, cast

import asyncpg

from gateway.domain.tenancy.configured_secret import ConfiguredSecret, as_configured
from gateway.errors import DatabaseUnavailable
from gateway.store.database.errors import REFUSED, translate_connect_error
from gateway.store.database.limits import CLOSE_S, COMMAND_S, CONNECT_S

APP_ROLE = "gateway_app"

_SCHEME = re.compile(r"\Apostgres(?:ql)?(?:\+[a-z0-9_]+)?://", re.IGNORECASE)

_SETTINGS = {"application_name": "gateway", "search_path": "public", "jit": "off"}
_GUARDS = {"statement_timeout": "10000", "idle_in_transaction_session_timeout": "60000"}  # guard: statement-timeout
_IS_SAFE = """
select current_user = $1 and not rolsuper and not rolbypassrls from pg_catalog.pg_roles where rolname = current_user
"""


class Statement(Protocol):
    """A prepared statement."""

    async def fetchval(self, *args: object) -> object:
        """Return the first column of the first row."""
        ...


class PostgresConnection(Protocol):
    """The driver's connection: the members that the gateway uses."""

    async def execute(self, query: str, *args: object) -> str:
        """Run a statement."""
        ...

    async def fetch(self, query: str, *args: object) -> Sequence[Mapping[str, object]]:
        """Return all rows."""
        ...

    async def fetchval(self, query: str, *args: object) -> object:
        """Return the first column of the first row."""
        ...

    async def prepare(self, query: str) -> Statement:
        """Prepare a statement, which the server parses once."""
        ...

    async def close(self) -> None:
        """Close the connection gracefully."""
        ...

    def terminate(self) -> None:
        """Drop the connection at once."""
        ...

    def get_server_pid(self) -> int:
        """The process of the server, as it announced itself at the start of the connection."""
        ...

    def is_in_transaction(self) -> bool:
        """True between BEGIN and the end of the transaction."""
        ...

    def is_closed(self) -> bool:
        """True if either side has closed the connection."""
        ...


class _Connect(Protocol):
    async def __call__(
        self, dsn: str, /, *, timeout: float, server_settings: Mapping[str, str], **more: object
    ) -> PostgresConnection: ...


class _FastClosingConnection(cast(Any, asyncpg.Connection)):  # type: ignore[misc]  # no stubs
    """A connection whose `close` with a timeout takes at most 0.1 s, because the server may not respond."""

    async def close(self, *, timeout: float | None = None) -> None:
        """Close gracefully within the timeout, or else abort."""
        above: Any = super()
        with suppress(TimeoutError):  # the driver has aborted the connection
            await above.close(timeout=None if timeout is None else min(timeout, CLOSE_S))


_connect_driver: _Connect = cast("_Connect", asyncpg.connect)  # pyright: ignore[reportUnknownMemberType]  # no stubs


async def connect_app(url: str | ConfiguredSecret) -> PostgresConnection:
    """Connect and take the role `gateway_app`, under any login; no other role may serve tenants.

    Raises:
        DatabaseUnavailable: PostgreSQL is not reachable, refuses the login or is not migrated; or the role is unsafe or
            not `gateway_app`.
        BrokenSetting: the URL cannot be read.
    """
    settings = {**_SETTINGS, **_GUARDS, "role": APP_ROLE}  # guard: role-taken
    connection = await _connect(url, settings, command_timeout=COMMAND_S, connection_class=_FastClosingConnection)
    try:
        if await connection.fetchval(_IS_SAFE, APP_ROLE) is not True:  # guard: role-checked
            raise DatabaseUnavailable(
                REFUSED,
                cause=f"The connection does not use the role {APP_ROLE}, or this role is a superuser or bypasses "
                f"row-level security: run `alter role {APP_ROLE} nosuperuser nobypassrls`, and connect without a "
                f"pooler that drops startup parameters.",
            )
    except BaseException:
        connection.terminate()
        raise
    return connection


async def connect_owner(url: str | ConfiguredSecret) -> PostgresConnection:
    """Connect under the login itself, to migrate or to diagnose; statements have no time limit.

    Raises:
        DatabaseUnavailable: PostgreSQL is not reachable or refuses the login.
        BrokenSetting: the URL cannot be read.
    """
    return await _connect(url, _SETTINGS)


async def _connect(url: str | ConfiguredSecret, settings: Mapping[str, str], **more: object) -> PostgresConnection:
    """Connect. After a refused login, a URL from a file is read again and used if it has changed."""
    configured = as_configured(url)
    try:
        try:
            return await _dial(configured.value, settings, **more)
        except asyncpg.PostgresError:  # poolers report a wrong password with other codes
            if not configured.reread():
                raise
        return await _dial(configured.value, settings, **more)
    except (OSError, TimeoutError, ValueError, TypeError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        # `from None`: the driver's error may quote the URL and its password.
        raise translate_connect_error(error) from None


async def _dial(url: str, settings: Mapping[str, str], **more: object) -> PostgresConnection:
    dsn, is_postgres = _SCHEME.subn("postgresql://", url, count=1)
    if not is_postgres:
        raise ValueError(url)
    return await _connect_driver(dsn, timeout=CONNECT_S, server_settings=dict(settings), **more)
