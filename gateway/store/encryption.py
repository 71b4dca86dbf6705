"""Envelope encryption of stored secrets with a tenant's data key, which a configured secret key wraps.

    secret key (configured) ─HKDF→ wrapping key ─AES-256-GCM→ the tenant's data key ─AES-256-GCM→ secret

An encrypted value can be decrypted only with the same context, such as tenant, source, scheme and version. A wrapped
data key names the secret key that wrapped it, so secret keys can be rotated while the gateway runs.
"""

import os
from collections.abc import Mapping, Sequence

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.domain.identifiers import TenantId
from gateway.errors import BrokenSetting, SecretUnreadable

_VERSION = b"\x01"
_KEY_BYTES = 32
_NAME_BYTES = 8
_NONCE_BYTES = 12
_WRAPPING = "wrap"
_NAMING = "name"
_RETAINING = "retained"


class EnvelopeCipher:
    """Encrypts with the first secret key, decrypts with any configured one."""

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys or not all(keys):
            raise BrokenSetting("There is no secret key for encryption: set GATEWAY_SECRET_KEYS.")
        self._keys = tuple(key.encode() for key in dict.fromkeys(keys))
        self._wrapping = {_key_name(key): _derive(key, _WRAPPING) for key in self._keys}
        self._first = next(iter(self._wrapping))
        self._kept: dict[str, list[bytes]] = {}

    def __repr__(self) -> str:
        return f"<EnvelopeCipher with {len(self._keys)} keys>"

    def derive(self, purpose: str) -> bytes:
        """A 32-byte key for one purpose, derived from the first secret key."""
        return _derive(self._keys[0], f"for {purpose}")

    def derive_all(self, purpose: str) -> tuple[bytes, ...]:
        """The keys for one purpose from all secret keys, in their order, so that MACs under older keys stay valid."""
        return tuple(_derive(key, f"for {purpose}") for key in self._keys)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the secret keys; the first key encrypts. A name is derived from its key and is not secret."""
        return tuple(name.hex() for name in self._wrapping)

    def derive_named(self, purpose: str) -> dict[str, bytes]:
        """The keys for one purpose by the names of their secret keys, in their order."""
        return dict(zip(self.names, self.derive_all(purpose), strict=True))

    def new_tenant_key(self, tenant: TenantId) -> bytes:
        """Generate a data key for a tenant, wrapped by the first secret key."""
        return self._wrap(tenant, AESGCM.generate_key(8 * _KEY_BYTES))

    def rewrap(self, tenant: TenantId, wrapped: bytes) -> bytes:
        """Wrap a data key again, with the first secret key.

        Raises:
            SecretUnreadable: no configured key unwraps it.
        """
        return self._wrap(tenant, self._unwrap(tenant, wrapped))

    def can_open(self, wrapped: bytes) -> bool:
        """True if one of the configured secret keys wrapped the data key."""
        return wrapped[1 : 1 + _NAME_BYTES] in self._wrapping

    def is_current(self, wrapped: bytes) -> bool:
        """True if the first secret key wrapped the data key, so that older secret keys are not needed for it."""
        return wrapped[1 : 1 + _NAME_BYTES] == self._first

    def retain(self, name: str, purposes: Sequence[str]) -> bytes:
        """Derive and encrypt the keys for `purposes` of the named secret key, for use after its removal."""
        key = next(key for key in self._keys if _key_name(key) == bytes.fromhex(name))
        return self._seal_retained(name, {purpose: _derive(key, f"for {purpose}") for purpose in purposes})

    def reseal_retained(self, name: str, sealed: bytes) -> bytes:
        """Encrypt retained keys again, with the first secret key.

        Raises:
            SecretUnreadable: no configured key decrypts them.
        """
        return self._seal_retained(name, self._open_retained(name, sealed))

    def learn(self, name: str, sealed: bytes) -> None:
        """Decrypt and store the retained keys of a removed secret key, for `derive_kept`.

        Raises:
            SecretUnreadable: no configured key decrypts them.
        """
        if name not in self.names:
            for purpose, key in self._open_retained(name, sealed).items():
                self.derive_kept(purpose).append(key)

    def derive_kept(self, purpose: str) -> list[bytes]:
        """The keys for one purpose of all secret keys, including removed ones that were passed to `learn`."""
        return self._kept.setdefault(purpose, list(self.derive_all(purpose)))

    def seal(self, tenant: TenantId, wrapped: bytes, value: bytes, *context: str) -> bytes:
        """Encrypt a value with the tenant's data key, bound to `context`.

        Raises:
            SecretUnreadable: no configured key unwraps the data key.
        """
        return _VERSION + _encrypt(self._unwrap(tenant, wrapped), value, _length_prefixed(tenant, *context))

    def open(self, tenant: TenantId, wrapped: bytes, sealed: bytes, *context: str) -> bytes:
        """Decrypt a value.

        Raises:
            SecretUnreadable: no configured key decrypts it, it was changed, or it was encrypted for another context.
        """
        key = self._unwrap(tenant, wrapped)
        if sealed[:1] != _VERSION:
            raise _unreadable()
        return _decrypt(key, sealed[1:], _length_prefixed(tenant, *context))

    def _seal_retained(self, name: str, keys: Mapping[str, bytes]) -> bytes:
        bound = _length_prefixed(_RETAINING, name)
        return _VERSION + self._first + _encrypt(self._wrapping[self._first], msgspec.msgpack.encode(keys), bound)

    def _open_retained(self, name: str, sealed: bytes) -> Mapping[str, bytes]:
        wrapping = self._wrapping.get(sealed[1 : 1 + _NAME_BYTES])
        if sealed[:1] != _VERSION or wrapping is None:
            raise _unreadable()
        plain = _decrypt(wrapping, sealed[1 + _NAME_BYTES :], _length_prefixed(_RETAINING, name))
        return msgspec.msgpack.decode(plain, type=dict[str, bytes])

    def _wrap(self, tenant: TenantId, data_key: bytes) -> bytes:
        return (
            _VERSION
            + self._first
            + _encrypt(self._wrapping[self._first], data_key, _length_prefixed(tenant, _WRAPPING))
        )

    def _unwrap(self, tenant: TenantId, wrapped: bytes) -> bytes:
        wrapping = self._wrapping.get(wrapped[1 : 1 + _NAME_BYTES])
        if wrapped[:1] != _VERSION or wrapping is None:
            raise _unreadable()
        return _decrypt(wrapping, wrapped[1 + _NAME_BYTES :], _length_prefixed(tenant, _WRAPPING))


def _key_name(key: bytes) -> bytes:
    return _derive(key, _NAMING)[:_NAME_BYTES]


def _derive(key: bytes, purpose: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=b"mcp-gateway", info=purpose.encode()).derive(key)


def _length_prefixed(*parts: str) -> bytes:
    """The parts, each prefixed with its length, so that different lists of parts have different encodings."""
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)  # guard: secret-in-its-place


def _encrypt(key: bytes, value: bytes, bound: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, value, bound)


def _decrypt(key: bytes, sealed: bytes, bound: bytes) -> bytes:
    try:
        return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound)
    except (InvalidTag, ValueError):
        raise _unreadable() from None


def _unreadable() -> SecretUnreadable:
    return SecretUnreadable("No configured secret key decrypts a stored secret.")
