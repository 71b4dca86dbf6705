"""How secrets rest in the database: sealed by a key of their tenant, which is sealed by a key we are given.

    secret key (configured) ─HKDF→ wrapping key ─AES-256-GCM→ the tenant's data key ─AES-256-GCM→ secret

A sealed value only opens in the place it was sealed for: tenant, source, scheme and version are bound to it.
A wrapped data key names the secret key that wrapped it, so keys can be exchanged while the gateway runs.
"""

import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.domain.identifiers import TenantId
from gateway.errors import BrokenSetting, SecretUnreadable

_FORM = b"\x01"
_KEY_BYTES = 32
_NAME_BYTES = 8
_NONCE_BYTES = 12
_WRAPPING = "wrap"
_NAMING = "name"


class EnvelopeCipher:
    """Seals with the first secret key, opens with all of them."""

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys or not all(keys):
            raise BrokenSetting("There is no secret key to seal with: set GATEWAY_SECRET_KEYS.")
        self._keys = tuple(key.encode() for key in keys)
        self._wrapping = {_derive(key, _NAMING)[:_NAME_BYTES]: _derive(key, _WRAPPING) for key in self._keys}
        self._first = next(iter(self._wrapping))

    def __repr__(self) -> str:
        return f"<Sealer with {len(self._keys)} keys>"

    def derive(self, purpose: str) -> bytes:
        """A key of 32 bytes for one purpose, from the first secret key."""
        return _derive(self._keys[0], f"for {purpose}")

    def derive_all(self, purpose: str) -> tuple[bytes, ...]:
        """The same from every secret key, the first one first: to accept what an older key made."""
        return tuple(_derive(key, f"for {purpose}") for key in self._keys)

    def new_tenant_key(self, tenant: TenantId) -> bytes:
        """A new data key for a tenant, wrapped."""
        return self._wrap(tenant, AESGCM.generate_key(8 * _KEY_BYTES))

    def rewrap(self, tenant: TenantId, wrapped: bytes) -> bytes:
        """The same data key, wrapped by the first secret key.

        Raises:
            SecretUnreadable: no configured key opens it.
        """
        return self._wrap(tenant, self._unwrap(tenant, wrapped))

    def can_open(self, wrapped: bytes) -> bool:
        """Whether one of the configured secret keys wrapped it."""
        return wrapped[1 : 1 + _NAME_BYTES] in self._wrapping

    def is_current(self, wrapped: bytes) -> bool:
        """Whether the first secret key wrapped it, so that older ones are not needed for it."""
        return wrapped[1 : 1 + _NAME_BYTES] == self._first

    def seal(self, tenant: TenantId, wrapped: bytes, value: bytes, *place: str) -> bytes:
        """The value, sealed by the tenant's data key for this place.

        Raises:
            SecretUnreadable: no configured key opens the data key.
        """
        return _FORM + _encrypt(self._unwrap(tenant, wrapped), value, _bound(tenant, *place))

    def open(self, tenant: TenantId, wrapped: bytes, sealed: bytes, *place: str) -> bytes:
        """The value again.

        Raises:
            SecretUnreadable: no configured key opens it, it was changed, or it was sealed for another place.
        """
        key = self._unwrap(tenant, wrapped)
        if sealed[:1] != _FORM:
            raise _unreadable()
        return _decrypt(key, sealed[1:], _bound(tenant, *place))

    def _wrap(self, tenant: TenantId, data_key: bytes) -> bytes:
        return _FORM + self._first + _encrypt(self._wrapping[self._first], data_key, _bound(tenant, _WRAPPING))

    def _unwrap(self, tenant: TenantId, wrapped: bytes) -> bytes:
        wrapping = self._wrapping.get(wrapped[1 : 1 + _NAME_BYTES])
        if wrapped[:1] != _FORM or wrapping is None:
            raise _unreadable()
        return _decrypt(wrapping, wrapped[1 + _NAME_BYTES :], _bound(tenant, _WRAPPING))


def _derive(key: bytes, purpose: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=b"mcp-gateway", info=purpose.encode()).derive(key)


def _bound(*parts: str) -> bytes:
    """The parts with their lengths, so that no two lists of parts look the same."""
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)


def _encrypt(key: bytes, value: bytes, bound: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, value, bound)


def _decrypt(key: bytes, sealed: bytes, bound: bytes) -> bytes:
    try:
        return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound)
    except (InvalidTag, ValueError):
        raise _unreadable() from None


def _unreadable() -> SecretUnreadable:
    return SecretUnreadable("A stored secret cannot be opened by any of the configured secret keys.")
