"""Cache of verified access tokens (JWTs), so that a replica parses and verifies each token once.

An entry is stored under a keyed digest of token and audience, never with the token. At each use, `VerifiedTokens`
compares what may have changed since: the expiry, the version of the issuer's settings, and the keys that are published
under the token's key id. `People` repeats the other checks: rules, denial, roles, introspection and proofs.
"""

import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from gateway.domain.fairness.fair_cache import FairCache
from gateway.domain.identifiers import IssuerId, TenantId
from gateway.domain.tenancy.issuers import IdentityClaims, Issuer, TenantIssuers
from gateway.identity.access_tokens import KeySource, VerifiedToken, verify
from gateway.identity.issued_tokens import IssuedToken, IssuedTokens
from gateway.identity.limits import DIGEST_BYTES, MAX_TOKEN_CACHE_BYTES, TOKEN_ENTRY_BYTES


@dataclass(frozen=True, slots=True)
class _Contents:
    """The contents of a verified token, without its issuer."""

    person: IdentityClaims
    expires_at: datetime
    thumbprint: str | None
    audiences: frozenset[str]


@dataclass(slots=True)
class _VerifiedEntry:
    """A verified token of an issuer; packed, its contents take a tenth of the memory."""

    issuer: IssuerId
    version: int
    kid: str | None
    published: Sequence[Mapping[str, Any]]
    packed: bytes


class _UsedKeys:
    """A key source that notes the key id of one verification, and the keys that were published under it."""

    def __init__(self, keys: KeySource) -> None:
        self._keys = keys
        self.kid: str | None = None
        self.published: Sequence[Mapping[str, Any]] = ()

    async def find(
        self, tenant: TenantId, url: str, kid: str | None, *, state: str = ""
    ) -> Sequence[Mapping[str, Any]]:
        self.kid, self.published = kid, await self._keys.find(tenant, url, kid, state=state)
        return self.published


class VerifiedTokens:
    """Verifies tokens of issuers and of the gateway, and caches the results on this replica."""

    def __init__(self, keys: KeySource, issued: IssuedTokens) -> None:
        self._keys = keys
        self._issued = issued
        self._seal = secrets.token_bytes(32)
        self._held = FairCache[bytes, _VerifiedEntry](MAX_TOKEN_CACHE_BYTES)
        self._held_issued = FairCache[bytes, bytes](MAX_TOKEN_CACHE_BYTES)

    async def verify(self, text: str, found: TenantIssuers, *, audience: str) -> VerifiedToken:
        """Verify a JWT of an issuer for this audience, and return its contents; raises like `access_tokens.verify`."""
        mark = self._digest(text, audience)
        held = self._held.get(found.tenant, mark)
        if held is not None and (token := await self._recall(found, held)) is not None:
            return token
        used = _UsedKeys(self._keys)
        token = await verify(text, found, used, audience=audience)
        contents = _Contents(token.person, token.expires_at, token.thumbprint, token.audiences)
        if (packed := _pack(contents)) is None:
            return token
        entry = _VerifiedEntry(token.issuer.id, token.issuer.version, used.kid, used.published, packed)
        self._held.put(found.tenant, mark, entry, len(packed) + TOKEN_ENTRY_BYTES)
        return token

    def verify_issued(self, tenant: TenantId, text: str, *, issuer: str, audience: str) -> IssuedToken:
        """Verify a token that the gateway issued, and return its contents; raises like `IssuedTokens.verify`.

        The keys and the server's identifier are the same as long as the process runs.
        """
        mark = self._digest(text, f"{issuer}\n{audience}")
        packed = self._held_issued.get(tenant, mark)
        if packed is not None:
            token = msgspec.msgpack.decode(packed, type=IssuedToken)
            if token.expires_at.timestamp() > time.time():  # guard: verified-issued-token-end
                return token
        token = self._issued.verify(text, issuer=issuer, audience=audience)
        if (packed := _pack(token)) is not None:
            self._held_issued.put(tenant, mark, packed, len(packed) + TOKEN_ENTRY_BYTES)
        return token

    async def _recall(self, found: TenantIssuers, held: _VerifiedEntry) -> VerifiedToken | None:
        """Return the contents of a cached token, if all that its verification depended on is unchanged."""
        issuer = _find_issuer(found, held)
        if issuer is None:
            return None
        published = await self._keys.find(found.tenant, issuer.jwks_url, held.kid, state=issuer.state)
        if list(published) != list(held.published):  # guard: verified-token-keys
            return None
        held.published = published  # equal, so that the objects of the former set can be released
        contents = msgspec.msgpack.decode(held.packed, type=_Contents)
        if contents.expires_at.timestamp() <= time.time():  # guard: verified-token-end
            return None
        return VerifiedToken(
            issuer=issuer,
            person=contents.person,
            expires_at=contents.expires_at,
            thumbprint=contents.thumbprint,
            audiences=contents.audiences,
        )

    def _digest(self, text: str, audience: str) -> bytes:
        named = f"{audience}\n{text}".encode("utf-8", "replace")  # guard: verified-token-audience
        return hashlib.blake2b(named, key=self._seal, digest_size=DIGEST_BYTES).digest()


def _pack(contents: _Contents | IssuedToken) -> bytes | None:
    """Pack the contents of a token; None if a claim has a lone surrogate, which JSON permits and UTF-8 does not."""
    try:
        return msgspec.msgpack.encode(contents)
    except UnicodeEncodeError:
        return None


def _find_issuer(found: TenantIssuers, held: _VerifiedEntry) -> Issuer | None:
    """Return the issuer of a cached token; None if it was changed, disabled or deleted."""
    for issuer in found.issuers:
        if issuer.id == held.issuer and issuer.version == held.version:  # guard: verified-token-issuer
            return issuer
    return None
