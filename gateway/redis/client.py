"""The Redis client, without retries: a command that fails raises `RedisUnavailable`.

By default redis-py retries a command ten times, which takes many seconds. No other package imports redis-py.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.client import PubSub as Subscriptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.commands.core import AsyncScript
from redis.driver_info import DriverInfo
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from gateway.errors import RedisUnavailable

_COMMAND_TIMEOUT_S = 1.0
_CONNECT_TIMEOUT_S = 1.0
_MAX_CONNECTIONS = 32
_PROTOCOL = 2  # the format of replies differs between protocol versions
_DRIVER = DriverInfo()
"""Name and version of the library for Redis; by default each new connection reads them from package metadata."""


class PubSub(Protocol):
    """The part of redis-py's `PubSub` that is used here, with types."""

    async def psubscribe(self, pattern: str, /) -> object:
        """Subscribe to every channel that the glob matches."""
        ...

    async def subscribe(self, *channels: str) -> object:
        """Subscribe to these channels."""
        ...

    async def unsubscribe(self, channel: str, /) -> object:
        """Unsubscribe from the channel."""
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

    async def publish(self, channel: str, message: bytes, /) -> int: ...
    async def ping(self) -> bool: ...
    def register_script(self, script: str, /) -> AsyncScript: ...
    async def aclose(self, close_connection_pool: bool | None = None) -> None: ...


class Client:
    """The connections of one replica to Redis: a pool for commands, and one connection for subscriptions."""

    def __init__(self, url: str) -> None:
        options = {
            "protocol": _PROTOCOL,
            "socket_timeout": _COMMAND_TIMEOUT_S,
            "socket_connect_timeout": _CONNECT_TIMEOUT_S,
            "retry": Retry(NoBackoff(), 0),
            "driver_info": _DRIVER,
        }
        self._pool: BlockingConnectionPool = cast(Any, BlockingConnectionPool).from_url(
            url, max_connections=_MAX_CONNECTIONS, timeout=_COMMAND_TIMEOUT_S, **options
        )
        self._commands = cast(_Commands, Redis(connection_pool=self._pool))
        self._subscriber: Redis = cast(Any, Redis).from_url(url, **options)

    async def close(self) -> None:
        """Close every connection, including those in use."""
        await self._subscriber.aclose(close_connection_pool=True)
        await self._commands.aclose()
        await self._pool.disconnect(inuse_connections=True)

    def script(self, text: str) -> "Script":
        """Return a callable Lua script; its text is sent only if Redis has not cached it."""
        return Script(self._commands.register_script(text))

    def listener(self) -> PubSub:
        """Return a separate connection for subscriptions; the caller wraps its use in `redis_errors_translated`."""
        return cast(PubSub, _Listener(self._subscriber.connection_pool))

    async def publish(self, channel: str, payload: bytes) -> None:
        """Publish a message to the current subscribers of the channel."""
        with redis_errors_translated():
            await self._commands.publish(channel, payload)

    async def ping(self) -> None:
        """Raise `RedisUnavailable` when Redis does not respond."""
        with redis_errors_translated():
            await self._commands.ping()


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

    def __init__(self, script: AsyncScript) -> None:
        self._script = script

    async def __call__(self, keys: Sequence[str], *arguments: str | bytes | int | float) -> Any:
        """Run the script once.

        Raises:
            RedisUnavailable: the script may or may not have run.
        """
        with redis_errors_translated():
            return await self._script(keys=keys, args=arguments)


@contextmanager
def redis_errors_translated() -> Generator[None]:
    """Translate every exception of redis-py and of its socket to `RedisUnavailable`."""
    try:
        yield
    except (RedisError, OSError) as error:  # TimeoutError is an OSError
        raise RedisUnavailable("Redis does not respond", retry_after_s=1.0) from error
