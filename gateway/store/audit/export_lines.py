"""Lines of an exported audit trail, as JSON, with Ed25519 signatures.

An export can be verified with the public key alone, without the gateway (`gateway.cli.audit_verifier`). A seal line
signs all preceding bytes, so a verifier can check lines before it parses them. MACs of entries are exported unchanged;
only a holder of the secret keys can verify them.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.domain.identifiers import TenantId
from gateway.store.audit.hash_chain import Link
from gateway.store.audit.signed_heads import Signature
from gateway.store.encryption import EnvelopeCipher

FORMAT = 1
"""Version of the format; a verifier refuses all other versions."""

_LATEST_US = 253_402_300_799_999_999
"""The end of the year 9999, the latest time that can be written as text."""
_EARLIEST_US = -62_135_596_800_000_000

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class ExportKey:
    """The key pair that signs one tenant's exports; derived from a secret key, so all replicas use the same pair."""

    private: Ed25519PrivateKey

    @classmethod
    def of(cls, tenant: TenantId, cipher: EnvelopeCipher) -> tuple[Self, ...]:
        """The keys of a tenant, one for each secret key; the first one signs."""
        derived = cipher.derive_all(f"audit exports of {tenant}")  # guard: export-key-of-the-tenant
        return tuple(cls(Ed25519PrivateKey.from_private_bytes(secret)) for secret in derived)

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return self.private.public_key().public_bytes_raw()

    @property
    def id(self) -> str:
        """The id of the key pair, derived from the public key."""
        return VerifyKey(self.public).id


@dataclass(frozen=True, slots=True)
class VerifyKey:
    """A public key of exports and cut records, 32 bytes."""

    public: bytes

    @property
    def id(self) -> str:
        """The id of the key, derived from the public key."""
        return hashlib.sha256(self.public).hexdigest()[:16]


class SealedLines:
    """Running state of one export: the number of lines, and the digest of their bytes."""

    def __init__(self, tenant: TenantId, key: ExportKey) -> None:
        self._tenant = tenant
        self._key = key
        self._lines = 0
        self._digest = hashlib.sha256()

    def add(self, lines: Iterable[Mapping[str, object]]) -> bytes:
        """Add lines; return them as bytes."""
        encoded = [_encode(line) for line in lines]
        self._lines += len(encoded)
        chunk = b"".join(line + b"\n" for line in encoded)
        self._digest.update(chunk)
        return chunk

    def seal(self) -> bytes:
        """Add a line that signs all lines before it; return it as bytes."""
        signed = statement(self._tenant, self._lines, self._digest.digest())
        signature = self._key.private.sign(signed).hex()
        return self.add([{"type": "seal", "lines": self._lines, "key": self._key.id, "signature": signature}])


def statement(tenant: str, lines: int, digest: bytes) -> bytes:
    """The bytes that the signature of a seal line covers."""
    return f"gateway audit export {FORMAT}\n{tenant}\n{lines}\n{digest.hex()}\n".encode()


def entry_line(link: Link) -> dict[str, object]:
    """An entry as a line: the values that its MAC covers, and the time as text. `detail` stays text for the MAC."""
    values = link.row._asdict()
    return {
        "type": "entry",
        **values,
        "digest": link.row.digest.hex(),
        "mac": link.mac.hex(),
        "at": moment(link.row.at_us),
    }


def head_line(signature: Signature) -> dict[str, object]:
    """A signature of the end of a chain, as a line."""
    values = signature.row._asdict()
    return {"type": "head", **values, "head": signature.row.head.hex(), "mac": signature.mac.hex()}


def content_hash(before: str, line: Mapping[str, object]) -> str:
    """Extend the running hash of a chain's contents by this line, as `gateway.cli.audit_verifier` does."""
    content = json.dumps(line, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{before}\n{content}".encode()).hexdigest()


def moment(at_us: int | None) -> str | None:
    """The time as text; None for a time out of range, which only an edit of the database can store."""
    if at_us is None or not _EARLIEST_US <= at_us <= _LATEST_US:
        return None
    seconds, micros = divmod(at_us, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros).isoformat()
