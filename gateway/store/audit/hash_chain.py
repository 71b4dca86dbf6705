"""Hash chains of audit rows: each row contains a MAC over itself and over the MAC of the previous row.

A chain belongs to one tenant and one writer, and its rows are numbered without gaps. The MAC key is not in the
database, so a verifier with the key detects a row that was changed, or deleted from the middle.
"""

import hmac
import time
from typing import NamedTuple

import msgspec

from gateway.domain.identifiers import AuditId

START = b""
"""The previous MAC of the first row of a chain."""

CATALOG = "catalog"
"""Writer of changes. Its entries have the tenant's revisions as numbers; adding one locks the tenant's row."""

CREATION = "tenant.create"
"""The action of the first entry of every tenant: the only change without a predecessor."""

DELETION = "tenant.delete"
"""The action of the last change of a tenant."""


class AuditRow(NamedTuple):
    """A row without its MAC, in the order of the table's columns."""

    tenant: str
    id: str
    writer: str
    seq: int
    at_us: int
    kind: str
    principal: str
    subject: str
    action: str
    target: str
    outcome: str
    correlation_id: str
    digest: bytes
    status: int | None
    duration_us: int
    result_bytes: int
    detail: str


class Link(NamedTuple):
    """A row as stored, with its MAC."""

    row: AuditRow
    mac: bytes
    is_contradicted: bool = False
    """True if a signature names another MAC for an entry of this number."""


_encoder = msgspec.msgpack.Encoder()


def link(chain_key: bytes, previous: bytes, row: AuditRow) -> bytes:
    """The MAC of a row that follows the one with the MAC `previous`."""
    return hmac.digest(chain_key, previous + _encoder.encode(row), "sha256")


def now_us() -> int:
    """Microseconds since 1970, the resolution of times in the database."""
    return time.time_ns() // 1000


def audit_id(at_us: int, suffix: str) -> AuditId:
    """An id that sorts by time: `aud_`, eleven hexadecimal digits of milliseconds, then the suffix."""
    return AuditId(f"aud_{at_us // 1000:011x}{suffix}")


def storable(text: str) -> str:
    """Replace characters that PostgreSQL cannot store, because one such row would fail its whole group."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
