"""Opaque list cursors: the last name of a page, with a MAC for one tenant, profile and list.

A cursor is keyset-based, so it stays valid when the catalog changes. A client can neither forge a cursor nor use it for
another list (RES-3).
"""

import binascii
import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode

from gateway.domain.identifiers import TenantId
from gateway.errors import InvalidCursor
from gateway.registry.limits import MAC_BYTES, MAX_CURSOR_LENGTH


class Cursors:
    """Creates cursors with one key, and verifies cursors of this key and of older keys."""

    def __init__(self, key: bytes, *older: bytes) -> None:
        self._keys = (key, *older)

    def mint(self, tenant: TenantId, profile: str, listing: str, last: str) -> str:
        """Create the cursor of the page that follows `last`."""
        mac = _mac(self._keys[0], tenant, profile, listing, last=last)
        return urlsafe_b64encode(mac + last.encode()).decode().rstrip("=")

    def open(self, tenant: TenantId, profile: str, listing: str, cursor: str) -> str:
        """Return the last name before the requested page.

        Raises:
            InvalidCursor: the cursor was not minted for this tenant, profile and list.
        """
        if not 0 < len(cursor) <= MAX_CURSOR_LENGTH:
            raise InvalidCursor("invalid cursor")
        try:
            raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            last = raw[MAC_BYTES:].decode()
        except (binascii.Error, ValueError):
            raise InvalidCursor("invalid cursor") from None
        macs = (_mac(key, tenant, profile, listing, last=last) for key in self._keys)
        if not any(hmac.compare_digest(raw[:MAC_BYTES], mac) for mac in macs):  # guard: cursor-signature
            raise InvalidCursor("invalid cursor")
        return last


def _mac(key: bytes, tenant: TenantId, profile: str, listing: str, *, last: str) -> bytes:
    spoken = "\0".join((tenant, profile, listing, last)).encode()  # guard: cursor-of-its-tenant, cursor-of-its-list
    return hmac.digest(key, spoken, hashlib.sha256)[:MAC_BYTES]
