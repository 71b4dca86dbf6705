"""Format and authentication of events on Redis channels.

Channel and payload both name the tenant, and a MAC covers both. A client that can publish in this Redis, but does not
know the secret, can neither forge an event nor copy one to another tenant.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, cast

from gateway.domain.events import (
    ApprovalChanged,
    CatalogMoved,
    Event,
    IssuerChanged,
    KeyChanged,
    LiveSourceChanged,
    RequestCancelled,
    ResourceUpdated,
    SessionEnded,
    TaskChanged,
    TemplateChanged,
    TenantRemoved,
)
from gateway.domain.identifiers import TenantId
from gateway.redis.limits.limits import MAC_BYTES


class MessageRefused(Exception):
    """A received message has a wrong MAC, tenant or form."""


class Envelope:
    """Encodes events of one namespace with a MAC; decodes and verifies received events."""

    def __init__(self, *, namespace: str, secret: bytes, older: Sequence[bytes] = ()) -> None:
        self._prefix = f"{namespace}:t:"
        self._suffix = ":events"
        self._secrets = (secret, *older)

    @property
    def pattern(self) -> str:
        """The glob that matches the event channels of all tenants."""
        literal = "".join(f"\\{character}" if character in "*?[]^\\" else character for character in self._prefix)
        return f"{literal}*{self._suffix}"

    def seal(self, event: Event) -> tuple[str, bytes]:
        """Return the channel of an event, and its bytes with the MAC."""
        channel = f"{self._prefix}{event.tenant}{self._suffix}"
        payload = json.dumps(_fields_of(event), separators=(",", ":")).encode()
        return channel, _mac(self._secrets[0], channel.encode(), payload) + payload

    def open(self, channel: bytes, message: bytes) -> Event | None:
        """Return the event in a message; None for an unknown kind, which newer replicas may send.

        Raises:
            MessageRefused: the MAC, the tenant or the form is wrong.
        """
        mac, payload = message[:MAC_BYTES], message[MAC_BYTES:]
        # guard: event-mac
        if not any(hmac.compare_digest(mac, _mac(secret, channel, payload)) for secret in self._secrets):
            raise MessageRefused("mac")
        try:
            received: object = json.loads(payload)
        except ValueError as error:
            raise MessageRefused("form") from error
        if not isinstance(received, dict):
            raise MessageRefused("form")
        return self._read(channel, cast(dict[str, object], received))

    def _read(self, channel: bytes, received: Mapping[str, object]) -> Event | None:
        tenant = received.get("tenant")
        # guard: event-tenant
        if not isinstance(tenant, str) or channel != f"{self._prefix}{tenant}{self._suffix}".encode():
            raise MessageRefused("tenant")
        try:
            return _event_of(TenantId(tenant), received)
        except (KeyError, TypeError) as error:
            raise MessageRefused("form") from error


def _mac(secret: bytes, channel: bytes, payload: bytes) -> bytes:
    # guard: event-mac-binds-its-channel
    return hmac.digest(secret, channel + b"\0" + payload, hashlib.sha256)[:MAC_BYTES]


_KINDS: Mapping[str, type[Event]] = {
    "catalog_moved": CatalogMoved,
    "key_changed": KeyChanged,
    "issuer_changed": IssuerChanged,
    "session_ended": SessionEnded,
    "tenant_removed": TenantRemoved,
    "request_cancelled": RequestCancelled,
    "resource_updated": ResourceUpdated,
    "template_changed": TemplateChanged,
    "live_source_changed": LiveSourceChanged,
    "approval_changed": ApprovalChanged,
    "task_changed": TaskChanged,
}
_NAMES = {event: kind for kind, event in _KINDS.items()}


def _fields_of(event: Event) -> dict[str, object]:
    return {"kind": _NAMES[type(event)], **asdict(event)}


def _event_of(tenant: TenantId, received: Mapping[str, object]) -> Event | None:
    """Build the event from the fields that this release knows; a missing flag counts as false."""
    kind = _KINDS.get(_text(received["kind"]))
    if kind is None:
        return None
    read: dict[str, Any] = {"tenant": tenant}
    for known in fields(kind):
        match known.name:
            case "tenant":
                pass
            case "revision":
                read["revision"] = _number(received["revision"])
            case "is_ended":
                read["is_ended"] = received.get("is_ended") is True
            case "kept":
                read["kept"] = _numbers(received.get("kept", []))
            case name:
                read[name] = _text(received[name])
    return kind(**read)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("not a whole number")
    return value


def _numbers(value: object) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return tuple(_number(one) for one in cast(list[object], value))
