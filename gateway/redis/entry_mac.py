"""MACs of values in Redis that the gateway relies on: stream messages, session records, answers, stored results.

Each kind has its own key. A MAC covers the Redis name of the value, which contains tenant and session. So a value
copied from another name is refused like a forged one. Not authenticated: the order of a stream's entries, and that none
is missing. Decision 20 lists what is sealed and what is not, and why.
"""

import hashlib
import hmac
from collections.abc import Sequence

from gateway.redis.event_bus import EventBus

SESSIONS, ANSWERS, RESULTS = "session records", "session answers", "kept results"
"""The purposes from which `PlaceMac` derives its keys."""

UPDATE = b"u"
"""The kind of a stream entry that reports a resource update."""

_MAC_BYTES = 16
_TO_CLIENTS = b"to clients"
"""The personalization of the hash: a MAC made for one direction is never valid for the other."""


class EntryMac:
    """Makes and verifies the MACs of messages to the clients of sessions."""

    def __init__(self, bus: EventBus) -> None:
        keys = bus.derive_all("session logs")
        self._fresh = [hashlib.blake2b(key=key, digest_size=_MAC_BYTES, person=_TO_CLIENTS) for key in keys]

    def make(self, log: str, kind: bytes, text: bytes) -> bytes:
        """The MAC of one whole message; the kind is one byte."""
        return _digest(self._fresh[0].copy(), log, kind, text)

    def holds(self, log: str, kind: bytes, text: bytes, mac: bytes) -> bool:
        """True if this is the MAC of the message."""
        return any(hmac.compare_digest(_digest(fresh.copy(), log, kind, text), mac) for fresh in self._fresh)


class PlaceMac:
    """Makes and verifies the MACs of values, each bound to its name in Redis."""

    def __init__(self, bus: EventBus, purpose: str) -> None:
        self._bus = bus
        self._fresh = [hashlib.blake2b(key=key, digest_size=_MAC_BYTES) for key in bus.derive_all(purpose)]

    def make(self, place: str, *parts: bytes) -> bytes:
        """The MAC of these parts under this name."""
        return _digest_parts(self._fresh[0].copy(), (place.encode(), *parts))

    def holds(self, place: str, *parts: bytes, mac: bytes | None) -> bool:
        """True if this is the MAC of these parts under this name.

        Parts without a MAC are accepted only while replicas of the previous release, which made none, may be running.
        """
        if mac is None:
            return self._bus.accepts_unsealed
        named = (place.encode(), *parts)
        return any(hmac.compare_digest(_digest_parts(fresh.copy(), named), mac) for fresh in self._fresh)


def _digest_parts(mac: "hashlib.blake2b", parts: Sequence[bytes]) -> bytes:
    for part in parts:
        mac.update(len(part).to_bytes(4, "big"))
        mac.update(part)
    return mac.digest()


def _digest(mac: "hashlib.blake2b", log: str, kind: bytes, text: bytes) -> bytes:
    name = log.encode()
    mac.update(len(name).to_bytes(4, "big") + name + kind)
    mac.update(text)
    return mac.digest()
