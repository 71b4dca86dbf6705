"""The cache of OAuth access tokens that replicas share: in Redis, encrypted, each until it expires.

The Redis key of a token contains its tenant. Decryption needs the gateway's secret and the Redis key under which the
token was stored.
"""

import hmac
import os
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import msgspec
import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.domain.http.requests import AccessToken
from gateway.domain.identifiers import TenantId
from gateway.errors import RedisUnavailable
from gateway.redis.event_bus import EventBus

log = structlog.get_logger(__name__)

_NONCE_BYTES = 12
_LOCK_MS = 15_000
"""Lifetime of the lock; longer than nearly every token request. A slower request only causes a second one."""
_LOCK_TIMEOUT_S = 5.0
_POLL_S = (0.02, 0.25)

_GET = "return redis.call('GET', KEYS[1])"
_PUT = "return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])"
_DROP = "return redis.call('DEL', KEYS[1])"
_ACQUIRE = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])"
_RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AccessToken).decode


class SharedTokens:
    """The shared access tokens of all tenants."""

    def __init__(self, bus: EventBus, *, secret: bytes) -> None:
        self._namespace = bus.namespace
        self._secret = secret
        self._cipher = AESGCM(secret)
        self._get_script = bus.script(_GET)
        self._put_script = bus.script(_PUT)
        self._drop_script = bus.script(_DROP)
        self._acquire_script = bus.script(_ACQUIRE)
        self._release_script = bus.script(_RELEASE)

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
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, _encode(token), key.encode())
        await self._put_script((key,), sealed, left_ms)

    async def drop(self, tenant: TenantId, name: str) -> None:
        """Delete a token.

        Raises:
            RedisUnavailable: the token may still be cached.
        """
        await self._drop_script((self._key(tenant, name, "token"),))

    @asynccontextmanager
    async def lock(self, tenant: TenantId, name: str) -> AsyncGenerator[None]:
        """Acquire the lock for fetching this token; after five seconds of waiting, continue without it.

        Raises:
            RedisUnavailable: it is unknown whether another replica holds the lock.
        """
        key, owner = self._key(tenant, name, "token-lock"), secrets.token_hex(16)
        is_ours = await self._wait(key, owner)
        try:
            yield
        finally:
            if is_ours:
                with anyio.CancelScope(shield=True):
                    await self._release(key, owner)

    async def _wait(self, key: str, owner: str) -> bool:
        pause = _POLL_S[0]
        with anyio.move_on_after(_LOCK_TIMEOUT_S):
            while not await self._acquire_script((key,), owner, _LOCK_MS):
                await anyio.sleep(pause)
                pause = min(pause * 2, _POLL_S[1])
            return True
        return False

    async def _release(self, key: str, owner: str) -> None:
        try:
            await self._release_script((key,), owner)
        except RedisUnavailable:
            log.warning("token_lock_not_released")  # the lock expires

    def _key(self, tenant: TenantId, name: str, kind: str) -> str:
        """Return the Redis key. `name` is derived from client secrets, so Redis receives only a keyed digest of it."""
        named = hmac.digest(self._secret, name.encode(), "sha256").hex()
        return f"{self._namespace}:t:{tenant}:{kind}:{named}"

    def _open(self, key: str, sealed: bytes) -> AccessToken | None:
        try:
            return _decode(self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], key.encode()))
        except (InvalidTag, ValueError, msgspec.MsgspecError):
            log.error("token_unreadable")
            return None
