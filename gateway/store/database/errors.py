"""Translation of PostgreSQL and driver errors into gateway errors, by SQLSTATE."""

import ssl
from collections.abc import Callable

import asyncpg
from sqlalchemy import event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.ext.asyncio.engine import AsyncEngine

from gateway.errors import BadInput, BrokenSetting, DatabaseUnavailable, GatewayError, NameTaken, NotFound
from gateway.store.database.limits import RETRY_S

_UNIQUE = "23505"
_FOREIGN_KEY = "23503"
_CANCELLED = "57014"
_NO_ROLE = "22023"
_FORBIDDEN = "42501"
_UNDEFINED_TABLE = "42P01"
_READ_ONLY = "25006"
_LOST_SESSION = frozenset({"26000", "42P05"})
_NOT_STORABLE = frozenset({"22021", "22P05", "54000"})
"""A character that PostgreSQL cannot store, such as NUL, or a name too long for an index."""

_WRONG_LOGIN = frozenset({"28000", "28P01", "3D000", "42704", _FORBIDDEN})
_EXHAUSTED = "53"
_RETRY_CLASSES = frozenset({"08", "40", "55", "57", "58"})
"""Connection, serialisation and deadlock, lock, operator intervention, system error."""

CONNECTION_ERRORS = (OSError, TimeoutError, asyncpg.InternalClientError)
"""Errors without a SQLSTATE for a lost connection; `InternalClientError` if it is lost during a command."""

REFUSED = "PostgreSQL refused the connection."
UNREACHABLE = "PostgreSQL cannot be reached."


def translate(error: Exception) -> GatewayError | None:
    """Return the gateway error for a driver error, or None for an unexpected error, which must not be hidden."""
    state = _state(error)
    if state == _UNIQUE:
        return NameTaken("The name is already in use.")
    if state == _FOREIGN_KEY:
        return NotFound("The parent of this object does not exist.")
    if state in _NOT_STORABLE:
        return BadInput("The value has a character that PostgreSQL cannot store, or is too long.")
    if state == _CANCELLED:
        return DatabaseUnavailable("PostgreSQL did not finish in time; retry later.", retry_after_s=RETRY_S)
    if state is not None and state[:2] == _EXHAUSTED:
        return DatabaseUnavailable("PostgreSQL has no disk space, memory or connection left.", retry_after_s=RETRY_S)
    if state == _UNDEFINED_TABLE:
        return DatabaseUnavailable("The database is not migrated: run `gateway migrate`.")
    if state == _READ_ONLY:
        return read_only()
    if state[:2] in _RETRY_CLASSES if state else isinstance(error, CONNECTION_ERRORS):
        return _unavailable()
    return None


def translate_connect_error(error: Exception) -> GatewayError:
    """Return the gateway error for any failure to connect; it never repeats the URL.

    The words of the server are only in its `cause`, because any caller may read the message.
    """
    state = _state(error)
    if state == _NO_ROLE and isinstance(error, asyncpg.InvalidParameterValueError):
        return DatabaseUnavailable(REFUSED, cause=f"The database is not migrated ({error}): run `gateway migrate`.")
    if state in _WRONG_LOGIN:
        return DatabaseUnavailable(REFUSED, cause=f"PostgreSQL refused the connection: {error}")
    if isinstance(error, ssl.SSLError):  # before ValueError: the error for an untrusted certificate is one
        return DatabaseUnavailable(
            UNREACHABLE,
            cause="The TLS connection to PostgreSQL failed, for example because its certificate is not trusted: "
            f"{error}.",
        )
    if isinstance(error, (asyncpg.ClientConfigurationError, ValueError, TypeError)):
        return BrokenSetting("The database URL is invalid; expected postgresql://user:password@host:port/database.")
    words = f": {error}" if state is not None else ""  # errors of the driver itself may quote the URL
    # guard: database-words-to-the-operator
    return DatabaseUnavailable(UNREACHABLE, cause=f"PostgreSQL cannot be reached: {type(error).__name__}{words}.")


def is_session_lost(error: BaseException) -> bool:
    """True if a session lacks a statement that was prepared in it, or has one of another client."""
    return _state(error) in _LOST_SESSION


def translate_engine_errors(engine: AsyncEngine, on_read_only: Callable[[], None] | None = None) -> None:
    """Make the engine raise the gateway's errors in place of the driver's errors that `translate` knows.

    `on_read_only` is called when PostgreSQL refuses a write as such.
    """

    def replace(context: ExceptionContext) -> GatewayError | None:
        error = context.original_exception
        if not isinstance(error, Exception):
            return None  # a cancellation
        if on_read_only is not None and is_read_only(error):
            on_read_only()
        return translate(error) or (_unavailable() if context.is_disconnect else None)

    event.listen(engine.sync_engine, "handle_error", replace, retval=True)


def is_read_only(error: BaseException) -> bool:
    """True if PostgreSQL refused a write, because it is a standby or set read-only."""
    return _state(error) == _READ_ONLY


def read_only() -> DatabaseUnavailable:
    """Return the error of a server that refuses writes."""
    return DatabaseUnavailable("PostgreSQL is read-only: it is a standby, or set so.", retry_after_s=RETRY_S)


def _state(error: BaseException) -> str | None:
    """The SQLSTATE of the error or of one of its causes."""
    seen: BaseException | None = error
    while seen is not None:
        state = getattr(seen, "sqlstate", None)
        if isinstance(state, str):
            return state
        seen = seen.__cause__
    return None


def _unavailable() -> DatabaseUnavailable:
    return DatabaseUnavailable("PostgreSQL does not respond.", retry_after_s=RETRY_S)
