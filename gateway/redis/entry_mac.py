"""MACs of values in Redis: stream messages, session records, clients' responses, stored results.

Each kind of value has its own MAC key. A MAC also covers the Redis key of the value, which contains the tenant and the
session or subject. So a value copied from another Redis key is refused like a forged value. The order and the
completeness of a stream's entries are not authenticated. Decision 20 lists the values with and without MACs.
"""

import hashlib
import hmac
from collections.abc import Sequence

from gateway.redis.event_bus import EventBus
from gateway.redis.limits.limits import MAC_BYTES

SESSIONS, ANSWERS, RESULTS, MESSAGES = "session records", "session answers", "kept results", "messages"
LINKS = "links of live sources"
"""The purposes for which `ValueMac` derives keys."""

UPDATE = b"u"
"""The kind of a stream entry that reports a resource update."""

_TO_CLIENTS = b"to clients"
"""The BLAKE2 personalization of MACs of messages to clients; other MACs have none."""


class EntryMac:
    """Makes and verifies the MACs of messages to the clients of sessions."""

    def __init__(self, bus: EventBus) -> None:
        keys = bus.derive_all("session logs")
        self._fresh = [hashlib.blake2b(key=key, digest_size=MAC_BYTES, person=_TO_CLIENTS) for key in keys]

    def make(self, log: str, kind: bytes, text: bytes) -> bytes:
        """Return the MAC of one complete message; `kind` is one byte."""
        return _digest(self._fresh[0].copy(), log, kind, text)

    def holds(self, log: str, kind: bytes, text: bytes, mac: bytes) -> bool:
        """True if this is the MAC of the message."""
        return any(hmac.compare_digest(_digest(fresh.copy(), log, kind, text), mac) for fresh in self._fresh)


class ValueMac:
    """Makes and verifies the MACs of values, each bound to its Redis key `name`."""

    def __init__(self, bus: EventBus, purpose: str) -> None:
        self._bus = bus
        self._fresh = [hashlib.blake2b(key=key, digest_size=MAC_BYTES) for key in bus.derive_all(purpose)]

    def make(self, name: str, *parts: bytes) -> bytes:
        """Return the MAC of these parts under this name."""
        return _digest_parts(self._fresh[0].copy(), (name.encode(), *parts))

    def holds(self, name: str, *parts: bytes, mac: bytes | None) -> bool:
        """True if this is the MAC of these parts under this name.

        Without a MAC, True only while the bus accepts state of the previous release, which made no MACs.
        """
        if mac is None:
            return self._bus.accepts_unsealed
        named = (name.encode(), *parts)
        return any(hmac.compare_digest(_digest_parts(fresh.copy(), named), mac) for fresh in self._fresh)

    def is_current(self, name: str, *parts: bytes, mac: bytes | None) -> bool:
        """True if this MAC was made with the current secret key, not with an older one."""
        return mac is not None and hmac.compare_digest(self.make(name, *parts), mac)


def _digest_parts(mac: "hashlib.blake2b", parts: Sequence[bytes]) -> bytes:
    for part in parts:  # guard: seal-of-the-place
        mac.update(len(part).to_bytes(4, "big"))
        mac.update(part)
    return mac.digest()


def _digest(mac: "hashlib.blake2b", log: str, kind: bytes, text: bytes) -> bytes:
    name = log.encode()
    mac.update(len(name).to_bytes(4, "big") + name + kind)  # guard: log-signature-of-the-stream
    mac.update(text)
    return mac.digest()
