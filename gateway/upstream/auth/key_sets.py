"""Cached JWK sets of issuers (RFC 7517), and discovery of issuer metadata (RFC 8414, OpenID Connect Discovery 1.0).

Every request uses the guarded client. A set is cached for ten minutes. An unknown key id or a failure causes another
request, at most one per set in 30 seconds. While a request runs or requests fail, a cached set is used for an hour. A
change of the issuer ends its set on every replica: a key that was removed because it was stolen is not accepted again.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

import anyio
import msgspec

from gateway.domain.fairness.fair_cache import FairCache
from gateway.domain.identifiers import TenantId
from gateway.domain.json_text import decode_object
from gateway.errors import DocumentTooLarge, FetchFailed, GatewayError, Unavailable, UpstreamError
from gateway.upstream.auth.limits import (
    FRESH_KEYS_S,
    KEYS_ENTRY_BYTES,
    KEYS_FETCH_S,
    KEYS_RETRY_S,
    MAX_CACHED_KEYS_BYTES,
    MAX_KEY_SET_BYTES,
    MAX_KEYS,
    MAX_WAITING_FOR_KEYS,
    STALE_KEYS_S,
)
from gateway.upstream.client import UpstreamClient
from gateway.upstream.document_fetch import fetch_document

Jwk = Mapping[str, Any]
"""A JSON Web Key as its issuer published it; its members are not checked."""


class _CachedSet:
    """Cache entry: the last fetched set of one URL, for one state of its issuer."""

    __slots__ = ("fetched_at", "keys", "lock", "tried_at")

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.keys: tuple[Jwk, ...] | None = None
        self.fetched_at = self.tried_at = float("-inf")

    def fill(self, keys: tuple[Jwk, ...]) -> None:
        """Store a set that was fetched just now."""
        self.keys = keys
        self.fetched_at = self.tried_at = time.monotonic()


class KeySets:
    """Fetches JWK sets, and caches them on this replica."""

    def __init__(self, upstream: UpstreamClient) -> None:
        self._upstream = upstream
        self._held = FairCache[tuple[str, str], _CachedSet](MAX_CACHED_KEYS_BYTES)

    def put(self, tenant: TenantId, url: str, keys: tuple[Jwk, ...], *, state: str) -> None:
        """Use a set that a change of the issuer has fetched."""
        held = _CachedSet()
        held.fill(keys)
        self._held.put(tenant, _place(url, state), held, _size(keys))

    async def find(self, tenant: TenantId, url: str, kid: str | None, *, state: str = "") -> Sequence[Jwk]:
        """Return the keys with this id, or all keys without an id; empty if the set has no such key.

        A set that was fetched for another state of the issuer is not used.

        Raises:
            Unavailable: no set could be fetched, or too many requests wait for it.
        """
        place = _place(url, state)
        held = self._held.get(tenant, place)
        if held is None:
            self._held.put(tenant, place, held := _CachedSet(), KEYS_ENTRY_BYTES)
        found, age_s = _select(held, kid), time.monotonic() - held.fetched_at
        is_stale = bool(found) and FRESH_KEYS_S < age_s <= STALE_KEYS_S
        if is_stale and held.lock.locked():  # an issuer that hangs delays one request in 30 seconds
            return found
        if not found or age_s > FRESH_KEYS_S:
            if held.lock.statistics().tasks_waiting >= MAX_WAITING_FOR_KEYS:  # guard: key-set-waiting
                raise Unavailable("too many requests wait for the signing keys of an issuer", retry_after_s=1.0)
            async with held.lock:
                if time.monotonic() - held.tried_at > KEYS_RETRY_S:  # guard: key-set-rate
                    await self._fetch(tenant, place, held)
            found = _select(held, kid)
        if held.keys is None or time.monotonic() - held.fetched_at > STALE_KEYS_S:
            raise Unavailable("the signing keys of the issuer cannot be fetched now", retry_after_s=KEYS_RETRY_S)
        return found

    async def _fetch(self, tenant: TenantId, place: tuple[str, str], held: _CachedSet) -> None:
        try:
            with anyio.fail_after(KEYS_FETCH_S):
                found = await fetch_document(self._upstream, place[0], limit=MAX_KEY_SET_BYTES, tenant=tenant)
                held.fill(read_keys(found))
            self._held.put(tenant, place, held, len(found) + KEYS_ENTRY_BYTES)
        except (GatewayError, TimeoutError):
            pass  # the cached set, if any, remains in use
        finally:
            held.tried_at = time.monotonic()


async def discover(upstream: UpstreamClient, tenant: TenantId, issuer: str, member: str = "jwks_uri") -> str:
    """Return a URL from an issuer's metadata: its `jwks_uri`, or another member.

    Raises:
        FetchFailed: the metadata cannot be read, or has no such member.
    """
    found = await fetch_metadata(upstream, tenant, issuer)
    place = found.get(member)
    if not isinstance(place, str):
        more = "; give the URL of the signing keys as jwks_url" if member == "jwks_uri" else ""
        raise FetchFailed(f"The metadata of {issuer} has no `{member}`{more}.")
    return place


async def fetch_metadata(upstream: UpstreamClient, tenant: TenantId, issuer: str) -> Mapping[str, Any]:
    """Return an issuer's metadata, from the first of its two URLs that has a document.

    Raises:
        FetchFailed: neither document can be read, or it belongs to another issuer (RFC 8414 section 3.3).
    """
    reasons: list[str] = []
    for url in _metadata_urls(issuer):
        try:
            with anyio.fail_after(KEYS_FETCH_S):
                found = decode_object(await fetch_document(upstream, url, limit=MAX_KEY_SET_BYTES, tenant=tenant))
        except (FetchFailed, UpstreamError, DocumentTooLarge) as error:
            reasons.append(f"{url}: {error.message}")
            continue
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TimeoutError):
            reasons.append(f"{url}: received no JSON object in time.")
            continue
        if found.get("issuer") != issuer:  # guard: issuer-metadata-own
            raise FetchFailed(f"{url} is the metadata of another issuer; give the URL in its member `issuer`.")
        return found
    raise FetchFailed("The issuer's metadata cannot be read: " + " ".join(reasons))


async def fetch_key_set(upstream: UpstreamClient, tenant: TenantId, url: str) -> tuple[Jwk, ...]:
    """Return the keys of a set.

    Raises:
        FetchFailed, UpstreamError, DocumentTooLarge: the set cannot be fetched, or is not a JWK set.
    """
    try:
        with anyio.fail_after(KEYS_FETCH_S):
            return read_keys(await fetch_document(upstream, url, limit=MAX_KEY_SET_BYTES, tenant=tenant))
    except TimeoutError:
        raise FetchFailed(f"{url} did not respond in time.") from None


def read_keys(body: bytes) -> tuple[Jwk, ...]:
    """Return the keys of a JWK set.

    Raises:
        FetchFailed: the body is not a JWK set, or has more than 100 keys.
    """
    try:
        keys = decode_object(body).get("keys")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        keys = None
    if not isinstance(keys, list):
        raise FetchFailed("The document is not a JWK set: it must be an object with `keys`.")
    several = cast("list[object]", keys)
    if len(several) > MAX_KEYS:
        raise FetchFailed(f"The JWK set has more than {MAX_KEYS} keys.")
    return tuple(cast("Jwk", key) for key in several if isinstance(key, dict))


def _place(url: str, state: str) -> tuple[str, str]:
    return url, state  # guard: key-set-of-this-state


def _size(keys: tuple[Jwk, ...]) -> int:
    return len(msgspec.json.encode(keys)) + KEYS_ENTRY_BYTES


def _select(held: _CachedSet, kid: str | None) -> Sequence[Jwk]:
    keys = held.keys or ()
    return keys if kid is None else [key for key in keys if key.get("kid") == kid]


def _metadata_urls(issuer: str) -> Sequence[str]:
    """Return the URLs of the metadata by RFC 8414 section 3.1 and OpenID Connect Discovery 1.0 section 4."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    origin = f"{parts.scheme}://{parts.netloc}"
    return (
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    )
