"""MACs of what lies in Redis and is believed: messages of streams, records of sessions, answers, kept results.

Each kind has a key of its own, and a MAC covers the name of the place. A name holds tenant and session, so what was
carried over from another place is refused like what was made up. The order of the entries of one stream, and whether
one of them is gone, is Redis' word. Decision 20 has what is sealed and what is not, and why.
"""

import hashlib
import hmac
from collections.abc import Sequence

from gateway.redis.event_bus import EventBus

SESSIONS, ANSWERS, RESULTS = "session records", "session answers", "kept results"
"""The purposes of the keys of `PlaceMac`."""

UPDATE = b"u"
"""The kind of an entry that says that a resource has changed."""

_MAC_BYTES = 16
_TO_CLIENTS = b"to clients"
"""What was written for one direction is never taken for something of the other."""


class EntryMac:
    """Makes and checks the MACs of what is said to the clients of sessions."""

    def __init__(self, bus: EventBus) -> None:
        keys = bus.derive_all("session logs")
        self._fresh = [hashlib.blake2b(key=key, digest_size=_MAC_BYTES, person=_TO_CLIENTS) for key in keys]

    def make(self, log: str, kind: bytes, text: bytes) -> bytes:
        """The MAC of one whole message; the kind is one byte."""
        return _digest(self._fresh[0].copy(), log, kind, text)

    def holds(self, log: str, kind: bytes, text: bytes, mac: bytes) -> bool:
        """Whether that is the MAC of this message."""
        return any(hmac.compare_digest(_digest(fresh.copy(), log, kind, text), mac) for fresh in self._fresh)


class PlaceMac:
    """Makes and checks the MACs of values by the name of their place in Redis."""

    def __init__(self, bus: EventBus, purpose: str) -> None:
        self._bus = bus
        self._fresh = [hashlib.blake2b(key=key, digest_size=_MAC_BYTES) for key in bus.derive_all(purpose)]

    def make(self, place: str, *parts: bytes) -> bytes:
        """The MAC of these parts in this place."""
        return _digest_parts(self._fresh[0].copy(), (place.encode(), *parts))

    def holds(self, place: str, *parts: bytes, mac: bytes | None) -> bool:
        """True for the MAC of these parts in this place.

        Without a MAC they are believed only while replicas of the release before, which made none, may be running.
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
