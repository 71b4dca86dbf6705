"""Servers that a URL of Redis names: one server, or the primary that Sentinels name at each new connection.

    redis://[USER:PASSWORD@]HOST:PORT/DB                                       rediss:// for TLS
    redis+sentinel://[USER:PASSWORD@]HOST:PORT,HOST:PORT,HOST:PORT/SERVICE/DB  rediss+sentinel:// for TLS to all of them

`sentinel_username` and `sentinel_password` in the query are the login at the Sentinels.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

from redis.asyncio import BlockingConnectionPool, ConnectionPool
from redis.asyncio.connection import Connection, SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.driver_info import DriverInfo

from gateway.errors import BrokenSetting

_PROTOCOL: Final = 2  # the format of replies differs between protocol versions
_DRIVER: Final = DriverInfo()
"""Name and version of the library for Redis; by default each new connection reads them from package metadata."""
_SENTINEL: Final = "+sentinel"
_SENTINEL_PORT: Final = 26379
_AUTHORITY_END: Final = re.compile(r"[/?#]")
_LOGIN: Final = {"sentinel_username": "username", "sentinel_password": "password"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisServers:
    """Parameters of connections. `sentinels` is empty for one server."""

    options: Mapping[str, Any] = field(repr=False)
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = ""
    login: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """Parameters of connections to the Sentinels."""

    def pool(self, kind: type[ConnectionPool], *, command_s: float, connect_s: float, **options: Any) -> "ServerPool":
        """Return a pool that connects at its first use; commands and connections have time limits in seconds."""
        timed = {"socket_timeout": command_s, "socket_connect_timeout": connect_s}
        sentinel: Sentinel | None = None
        chosen = {**self.options, **timed, **_NO_RETRIES, **options}
        if self.sentinels:
            login = {**self.login, **timed, **_NO_RETRIES}
            sentinel = cast(Any, Sentinel)(self.sentinels, sentinel_kwargs=login)
            is_tls = chosen.get("connection_class") is SSLConnection
            chosen["connection_class"] = _SecurePrimaryConnection if is_tls else _PrimaryConnection
            chosen |= {"sentinel": sentinel, "service": self.service}
        return ServerPool(cast(Any, kind)(**chosen), sentinel)


@dataclass(frozen=True, slots=True)
class ServerPool:
    """A pool of connections, and the connections to the Sentinels that name its server."""

    pool: ConnectionPool
    sentinel: Sentinel | None

    async def close(self) -> None:
        """Close every connection, including those in use."""
        await self.pool.disconnect(inuse_connections=True)
        await self.close_sentinels()

    async def close_sentinels(self) -> None:
        """Close the connections to the Sentinels."""
        if self.sentinel is not None:
            await cast(Any, self.sentinel).aclose()


_NO_RETRIES: Final[Mapping[str, Any]] = {
    "protocol": _PROTOCOL,
    "retry": Retry(NoBackoff(), 0),  # by default, redis-py retries a command ten times, which takes many seconds
    "driver_info": _DRIVER,
}


def read_servers(url: str) -> RedisServers:
    """Return the servers of a URL.

    Raises:
        BrokenSetting: it is no URL of Redis, or one of Sentinels without the name of the service.
    """
    scheme, _, rest = url.partition("://")
    if not scheme.endswith(_SENTINEL):
        return RedisServers(options=_parse(url))
    authority = _AUTHORITY_END.split(rest, maxsplit=1)[0]  # `urlsplit` refuses several hosts with brackets
    parts = urlsplit(rest.removeprefix(authority))
    service, _, number = parts.path.strip("/").partition("/")
    user, at, hosts = authority.rpartition("@")
    if not service:
        raise BrokenSetting("GATEWAY_REDIS_URL: a URL of Sentinels needs the name of the service: …:26379/SERVICE")
    query = parse_qsl(parts.query, keep_blank_values=True)
    plain = urlencode([one for one in query if one[0] not in _LOGIN])
    options = _parse(f"{scheme.removesuffix(_SENTINEL)}://{user}{at}localhost/{number}?{plain}")
    for name in ("host", "port"):
        options.pop(name, None)
    login: dict[str, Any] = {_LOGIN[name]: value for name, value in query if name in _LOGIN}
    if options.get("connection_class") is SSLConnection:
        login |= {"ssl": True} | {name: value for name, value in options.items() if name.startswith("ssl_")}
    addresses = tuple(_read_address(host) for host in hosts.split(","))
    return RedisServers(options=options, sentinels=addresses, service=service, login=login)


def _parse(url: str) -> dict[str, Any]:
    try:
        return dict(cast(Mapping[str, Any], parse_url(url)))
    except ValueError as error:
        raise BrokenSetting(f"GATEWAY_REDIS_URL: {error}") from None


def _read_address(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    try:
        port = parts.port or _SENTINEL_PORT
    except ValueError:
        port = 0
    if not parts.hostname or not port:
        raise BrokenSetting("GATEWAY_REDIS_URL: each Sentinel needs a host, and a port if it is not 26379")
    return parts.hostname, port


class _PrimaryConnection(Connection):
    """A connection to the server that the Sentinels name when it is made.

    redis-py's `SentinelManagedConnection` has no pool that waits for a free connection, and hides that a server has
    refused a command, which the client may then send again.
    """

    def __init__(self, *, sentinel: Sentinel, service: str, **options: Any) -> None:
        cast(Any, super()).__init__(**options)
        self._sentinel = sentinel
        self._service = service

    async def _connect(self) -> None:
        self.host, self.port = await cast(Any, self._sentinel).discover_master(self._service)
        await cast(Any, super())._connect()  # noqa: SLF001  # the hook that opens the socket


class _SecurePrimaryConnection(_PrimaryConnection, SSLConnection):
    """The same, with TLS."""


def open_pools(url: str, *, command_s: float, connect_s: float, max_connections: int) -> tuple[ServerPool, ServerPool]:
    """Return the pool of commands, whose users wait for a free connection, and that of subscriptions."""
    servers = read_servers(url)
    limits = {"max_connections": max_connections, "timeout": command_s}
    return (
        servers.pool(BlockingConnectionPool, command_s=command_s, connect_s=connect_s, **limits),
        servers.pool(ConnectionPool, command_s=command_s, connect_s=connect_s),
    )
