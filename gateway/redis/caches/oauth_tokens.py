"""The cache of OAuth access tokens that replicas share: in Redis, encrypted, each until it expires.

The Redis key of a token contains its tenant. Decryption needs the gateway's secret and the Redis key under which the
token was stored.
"""

import hmac
import time
from contextlib import AbstractAsyncContextManager

import msgspec
import structlog

from gateway.domain.http.requests import AccessToken
from gateway.domain.identifiers import TenantId
from gateway.redis.event_bus import EventBus
from gateway.redis.locks import WorkLocks
from gateway.redis.sealed_values import SealedValues

log = structlog.get_logger(__name__)

_GET = "return redis.call('GET', KEYS[1])"
_PUT = "return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])"
_DROP = "return redis.call('DEL', KEYS[1])"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AccessToken).decode


class SharedTokens:
    """The shared access tokens of all tenants."""

    def __init__(self, bus: EventBus, *, secret: bytes) -> None:
        self._namespace = bus.namespace
        self._secret = secret
        self._values = SealedValues(secret)
        self._locks = WorkLocks(bus)
        self._get_script = bus.script(_GET)
        self._put_script = bus.script(_PUT)
        self._drop_script = bus.script(_DROP)

    async def get(self, tenant: TenantId, name: str) -> AccessToken | None:
        """Return the token cached under this name; None if there is none or it cannot be decrypted.

        Raises:
            RedisUnavailable: the cache cannot be read.
        """
        key = self._key(tenant, name, "token")
        sealed: bytes | None = await self._get_script((key,))
        return None if sealed is None else self._open(key, sealed)

    async def put(self, tenant: TenantId, name: str, token: AccessToken) -> None:
        """Cache a token until it expires.

        Raises:
            RedisUnavailable: the token may or may not be cached.
        """
        left_ms = int((token.expires_at - time.time()) * 1000)
        if left_ms <= 0:
            return
        key = self._key(tenant, name, "token")
        await self._put_script((key,), self._values.seal(key, _encode(token)), left_ms)

    async def drop(self, tenant: TenantId, name: str) -> None:
        """Delete a token.

        Raises:
            RedisUnavailable: the token may still be cached.
        """
        await self._drop_script((self._key(tenant, name, "token"),))

    def lock(self, tenant: TenantId, name: str) -> AbstractAsyncContextManager[None]:
        """Acquire the lock for fetching this token; see `WorkLocks.hold`."""
        return self._locks.hold(self._key(tenant, name, "token-lock"))

    def _key(self, tenant: TenantId, name: str, kind: str) -> str:
        """Return the Redis key. `name` is derived from client secrets, so Redis receives only a keyed digest of it."""
        named = hmac.digest(self._secret, name.encode(), "sha256").hex()
        return f"{self._namespace}:t:{tenant}:{kind}:{named}"

    def _open(self, key: str, sealed: bytes) -> AccessToken | None:
        value = self._values.open(key, sealed)
        try:
            return None if value is None else _decode(value)
        except msgspec.MsgspecError:
            log.error("token_unreadable")
            return None
