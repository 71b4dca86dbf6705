"""Signatures of deliveries by Standard Webhooks: HMAC-SHA256 over id, time and body, with one or two secrets."""

import binascii
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable

from gateway.catalog.updates.limits import MAX_SIGNATURES, MIN_SECRET_BYTES, SECRET_BYTES
from gateway.domain.updates.webhooks import SigningSecrets

PREFIX = "whsec_"
_VERSION = "v1"


def new_secret() -> str:
    """A new secret in text form: the prefix and 256 random bits."""
    return PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def is_secret(text: str) -> bool:
    """True if the text is a secret in text form: the prefix, and at least 192 random bits in base64."""
    try:
        return text.startswith(PREFIX) and len(b64decode(text.removeprefix(PREFIX), validate=True)) >= MIN_SECRET_BYTES
    except (binascii.Error, ValueError):
        return False


def sign(secret: str, *, delivery: str, at: str, body: bytes) -> str:
    """The signature of a delivery in the form of its header."""
    # guard: webhook-signed-body
    mac = hmac.digest(b64decode(secret.removeprefix(PREFIX)), f"{delivery}.{at}.".encode() + body, "sha256")
    return f"{_VERSION},{b64encode(mac).decode()}"


def is_signed(header: str, signing: SigningSecrets, *, delivery: str, at: str, body: bytes) -> bool:
    """True if one of the header's first 16 signatures was made with one of the secrets; compared in constant time."""
    received_macs = list(_macs(header.split(" ", MAX_SIGNATURES)[:MAX_SIGNATURES]))
    is_valid = False
    for secret in (signing.current, signing.previous):
        if secret is not None:
            expected_mac = b64decode(sign(secret, delivery=delivery, at=at, body=body).removeprefix(f"{_VERSION},"))
            for mac in received_macs:
                is_valid |= hmac.compare_digest(mac, expected_mac)
    return is_valid


def _macs(signatures: Iterable[str]) -> Iterable[bytes]:
    for signature in signatures:
        version, _, encoded = signature.partition(",")
        if version == _VERSION:
            try:
                yield b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                continue
