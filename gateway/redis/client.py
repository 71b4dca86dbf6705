"""The Redis client, without retries: a command that fails raises `RedisUnavailable`.

Only a command that the server refused without running it is sent again. No other package imports redis-py.
"""

import math
import re
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol, TypeVar, cast

import structlog
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.client import PubSub as Subscriptions
from redis.commands.core import AsyncScript
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    MasterDownError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError

from gateway.domain.tenancy.configured_secret import ConfiguredSecret, as_configured
from gateway.errors import RedisUnavailable
from gateway.redis.limits.limits import COMMAND_S, CONNECT_S, FIRST_REPLACE_S, LAST_REPLACE_S, MAX_CONNECTIONS
from gateway.redis.servers import ServerPool, open_pools

log = structlog.get_logger(__name__)

_T = TypeVar("_T")

NOW_US: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
"""
"""The beginning of a script that orders by the clock of Redis: `now` is in microseconds."""
NOW_MS: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""
"""Begin of a script that compares times: `now` is the time of the Redis server in ms, equal for all replicas."""
_REFUSAL: Final = re.compile(r"(?:^|[ -])(?:READONLY|LOADING|MASTERDOWN|NOREPLICAS)\b")
"""Codes of refusals; `NOREPLICAS` is one of a primary that has lost its replicas, and perhaps its role."""


class PubSub(Protocol):
    """The part of redis-py's `PubSub` that is used here, with types."""

    async def psubscribe(self, pattern: str, /) -> object:
        """Subscribe to every channel that the glob matches."""
        ...

    async def subscribe(self, *channels: str) -> object:
        """Subscribe to these channels."""
        ...

    async def unsubscribe(self, *channels: str) -> object:
        """Unsubscribe from these channels."""
        ...

    async def get_message(
        self, ignore_subscribe_messages: bool = False, timeout: float | None = 0.0
    ) -> dict[str, Any] | None:
        """Return the next message, or None after the timeout."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...


class _Commands(Protocol):
    """The part of redis-py's client that is used here, with types."""

    connection_pool: BlockingConnectionPool

    async def publish(self, channel: str, message: bytes, /) -> int: ...
    async def ping(self) -> bool: ...
    def register_script(self, script: str, /) -> AsyncScript: ...
    async def aclose(self, close_connection_pool: bool | None = None) -> None: ...


class Client:
    """The connections of one replica to Redis: a pool for commands, and one connection for subscriptions.

    A server that is no longer the primary, or not ready, refuses commands over connections that work. After such a
    refusal all connections are replaced, so that the name in the URL is resolved again.
    """

    def __init__(self, url: str | ConfiguredSecret) -> None:
        self._url = as_configured(url)
        self._pool, self._subscriber = _open(self._url.value)
        self._commands = cast(_Commands, Redis(connection_pool=self._pool.pool))
        self._replaced_at = -math.inf
        self._pause_s = FIRST_REPLACE_S

    async def close(self) -> None:
        """Close every connection, including those in use."""
        await self._subscriber.close()
        await self._commands.aclose()
        await self._pool.close()

    def script(self, text: str) -> "Script":
        """Return a callable Lua script; its text is sent only if Redis has not cached it."""
        return Script(self, self._commands.register_script(text))

    def listener(self) -> PubSub:
        """Return a separate connection for subscriptions; the caller wraps its use in `redis_errors_translated`."""
        return cast(PubSub, _Listener(self._subscriber.pool))

    async def publish(self, channel: str, payload: bytes) -> None:
        """Publish a message to the current subscribers of the channel."""
        await self.run(lambda: self._commands.publish(channel, payload))

    async def ping(self) -> None:
        """Raise `RedisUnavailable` when Redis does not respond."""
        await self.run(self._commands.ping)

    async def run(self, command: Callable[[], Awaitable[_T]]) -> _T:
        """Run a command. One that the server refused without running it is sent once more, over a new connection.

        Raises:
            RedisUnavailable: the command may or may not have run.
        """
        pool = self._pool
        with redis_errors_translated():
            try:
                return await command()
            except RedisError as error:
                if not await self._can_repeat(error, pool):
                    raise
            except RuntimeError as error:  # uvloop's, for a transport that is closed
                raise RedisConnectionError(str(error)) from error
            return await command()

    async def reread(self) -> bool:
        """Read the URL again; if it has changed, return True and replace the connections under the older URL."""
        is_changed = self._url.reread()
        if is_changed:
            await self._replace()
        return is_changed

    async def recover(self, error: RedisUnavailable) -> None:
        """Replace the connections if the failure of a subscription shows that they need it."""
        if isinstance(error.__cause__, RedisError):
            await self._can_repeat(error.__cause__, self._pool)

    async def _can_repeat(self, error: RedisError, pool: ServerPool) -> bool:
        """True if the server has refused a command without running it, and there are new connections."""
        is_login = _is_refused_login(error)
        if not is_login and not _is_refusal_of_server(error):
            return False
        now = time.monotonic()
        if self._pool is pool and now - self._replaced_at > self._pause_s:
            is_again = now - self._replaced_at < 2 * LAST_REPLACE_S
            self._pause_s = min(2 * self._pause_s, LAST_REPLACE_S) if is_again else FIRST_REPLACE_S
            self._replaced_at = now
            if not is_login or self._url.reread():
                await self._replace()
                log.warning("redis_connections_replaced", reason=str(error))
        return self._pool is not pool

    async def _replace(self) -> None:
        """Open new pools; older connections are closed, those in use when their command has ended."""
        pool, subscriber = self._pool, self._subscriber
        self._pool, self._subscriber = _open(self._url.value)
        self._commands.connection_pool = cast(BlockingConnectionPool, self._pool.pool)
        with suppress(RedisError, OSError):
            await cast(Any, pool.pool).update_active_connections_for_reconnect()
            await pool.pool.disconnect(inuse_connections=False)
            await pool.close_sentinels()
        with suppress(RedisError, OSError):
            await subscriber.close()  # the event bus subscribes again


def _is_refused_login(error: BaseException | None) -> bool:
    """True if a server refused the login; redis-py wraps the error of a new connection."""
    return error is not None and (isinstance(error, AuthenticationError) or _is_refused_login(error.__cause__))


def _is_refusal_of_server(error: BaseException | None) -> bool:
    """True if a server refused a command because it is no primary, or not ready; a script ends at its first write.

    Redis before version 7 reports a refusal inside a script as an error of the script.
    """
    if error is None or isinstance(error, ReadOnlyError | BusyLoadingError | MasterDownError):
        return error is not None
    if isinstance(error, ResponseError) and _REFUSAL.search(str(error)) is not None:
        return True
    return _is_refusal_of_server(error.__cause__)


def _open(url: str) -> tuple[ServerPool, ServerPool]:
    """Return the pool of commands and that of subscriptions; neither connects before its first use."""
    return open_pools(url, command_s=COMMAND_S, connect_s=CONNECT_S, max_connections=MAX_CONNECTIONS)


class _Listener(Subscriptions):
    """Subscriptions on one connection; when it is lost, every use fails.

    By default redis-py makes a new connection in whichever task uses the lost one. Two tasks that do so at the same
    time read each other's replies, and one of them waits without end.
    """

    _was_connected = False

    async def connect(self) -> None:
        self._refuse_if_lost()
        await cast(Any, super()).connect()
        self._was_connected = True

    async def execute_command(self, *args: Any) -> Any:
        try:
            return await cast(Any, super()).execute_command(*args)
        except RuntimeError as error:  # uvloop's, for a transport that is closed
            raise RedisConnectionError(str(error)) from error

    async def parse_response(self, block: bool = True, timeout: float = 0) -> Any:
        self._refuse_if_lost()
        return await cast(Any, super()).parse_response(block, timeout)

    async def _reconnect(self, conn: object, error: BaseException | None = None, *_: object, **__: object) -> None:
        raise error or RedisConnectionError("the connection is lost")

    def _refuse_if_lost(self) -> None:
        connection = cast(Any, self.connection)
        if self._was_connected and (connection is None or not connection.is_connected):
            raise RedisConnectionError("the connection is lost")


class Script:
    """One Lua script; its execution is atomic."""

    def __init__(self, client: Client, script: AsyncScript) -> None:
        self._client = client
        self._script = script

    async def __call__(self, keys: Sequence[str], *arguments: str | bytes | int | float) -> Any:
        """Run the script once.

        Raises:
            RedisUnavailable: the script may or may not have run.
        """
        return await self._client.run(lambda: self._script(keys=keys, args=arguments))


@contextmanager
def redis_errors_translated() -> Generator[None]:
    """Translate every exception of redis-py and of its socket to `RedisUnavailable`."""
    try:
        yield
    except (RedisError, OSError) as error:  # TimeoutError is an OSError
        raise RedisUnavailable(_describe(error), retry_after_s=1.0) from error


def _describe(error: Exception) -> str:
    """Return the message for a failure, without words of the server: tenants read it too."""
    if _is_refused_login(error):
        return "Redis refused the login"
    if _is_refusal_of_server(error):
        return "Redis is a read-only replica, or not ready"
    return "Redis does not respond"
