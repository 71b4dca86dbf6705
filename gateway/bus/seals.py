"""What shows that an entry of a session's stream was written by a replica of ours, for this stream of this session.

The name of a log has tenant, session and stream in it, so an entry that was carried over from another one is no more
believed than one that somebody made up. In which order entries of one stream lie, and whether one of them is gone, is
Redis' word.
"""

import hashlib
import hmac

from gateway.bus.bus import Bus

UPDATE = b"u"
"""The kind of an entry that says that a resource has changed."""

_MAC_BYTES = 16
_TO_CLIENTS = b"to clients"
"""What was written for one direction is never taken for something of the other."""


class Seal:
    """Makes and checks the MACs of what is said to the clients of sessions."""

    def __init__(self, bus: Bus) -> None:
        keys = bus.derive_all("session logs")
        self._fresh = [hashlib.blake2b(key=key, digest_size=_MAC_BYTES, person=_TO_CLIENTS) for key in keys]

    def make(self, log: str, kind: bytes, text: bytes) -> bytes:
        """The MAC of one whole message; the kind is one byte."""
        return _digest(self._fresh[0].copy(), log, kind, text)

    def holds(self, log: str, kind: bytes, text: bytes, mac: bytes) -> bool:
        """Whether that is the MAC of this message."""
        return any(hmac.compare_digest(_digest(fresh.copy(), log, kind, text), mac) for fresh in self._fresh)


def _digest(mac: "hashlib.blake2b", log: str, kind: bytes, text: bytes) -> bytes:
    name = log.encode()
    mac.update(len(name).to_bytes(4, "big") + name + kind)
    mac.update(text)
    return mac.digest()
