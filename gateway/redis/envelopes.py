"""The format and the authentication of events on Redis channels.

Channel and payload both name the tenant, and a MAC covers both. A client that can publish in this Redis, but does not
know the secret, can neither forge an event nor copy one to another tenant.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import cast

from gateway.domain.events import (
    CatalogMoved,
    Event,
    KeyChanged,
    RequestCancelled,
    ResourceUpdated,
    SessionEnded,
    TemplateChanged,
    TenantRemoved,
)
from gateway.domain.identifiers import KeyId, TenantId

_MAC_BYTES = 16


class MessageRefused(Exception):
    """A received message has a wrong MAC, tenant or form."""


class Envelope:
    """Seals the events of one namespace, and opens and verifies received ones."""

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
        payload = json.dumps({"tenant": event.tenant, **_fields_of(event)}, separators=(",", ":")).encode()
        return channel, _mac(self._secrets[0], channel.encode(), payload) + payload

    def open(self, channel: bytes, message: bytes) -> Event | None:
        """Return the event in a message; None for an unknown kind, which newer replicas may send.

        Raises:
            MessageRefused: the MAC, the tenant or the form is wrong.
        """
        mac, payload = message[:_MAC_BYTES], message[_MAC_BYTES:]
        # guard: event-mac
        if not any(hmac.compare_digest(mac, _mac(secret, channel, payload)) for secret in self._secrets):
            raise MessageRefused("mac")
        try:
            fields: object = json.loads(payload)
        except ValueError as error:
            raise MessageRefused("form") from error
        if not isinstance(fields, dict):
            raise MessageRefused("form")
        return self._read(channel, cast(dict[str, object], fields))

    def _read(self, channel: bytes, fields: Mapping[str, object]) -> Event | None:
        tenant = fields.get("tenant")
        # guard: event-tenant
        if not isinstance(tenant, str) or channel != f"{self._prefix}{tenant}{self._suffix}".encode():
            raise MessageRefused("tenant")
        try:
            return _event_of(TenantId(tenant), fields)
        except (KeyError, TypeError) as error:
            raise MessageRefused("form") from error


def _mac(secret: bytes, channel: bytes, payload: bytes) -> bytes:
    # guard: event-mac-binds-its-channel
    return hmac.digest(secret, channel + b"\0" + payload, hashlib.sha256)[:_MAC_BYTES]


def _fields_of(event: Event) -> dict[str, object]:
    match event:
        case CatalogMoved(revision=revision):
            return {"kind": "catalog_moved", "revision": revision}
        case KeyChanged(key=key, is_ended=is_ended):
            return {"kind": "key_changed", "key": key, "is_ended": is_ended}
        case SessionEnded(session=session):
            return {"kind": "session_ended", "session": session}
        case TenantRemoved():
            return {"kind": "tenant_removed"}
        case RequestCancelled(session=session, request=request):
            return {"kind": "request_cancelled", "session": session, "request": request}
        case ResourceUpdated(uri=uri):
            return {"kind": "resource_updated", "uri": uri}
        case TemplateChanged(template=template):
            return {"kind": "template_changed", "template": template}


def _event_of(tenant: TenantId, fields: Mapping[str, object]) -> Event | None:
    match fields["kind"]:
        case "catalog_moved":
            return CatalogMoved(tenant=tenant, revision=_number(fields["revision"]))
        case "key_changed":
            is_ended = fields.get("is_ended") is True
            return KeyChanged(tenant=tenant, key=KeyId(_text(fields["key"])), is_ended=is_ended)
        case "session_ended":
            return SessionEnded(tenant=tenant, session=_text(fields["session"]))
        case "tenant_removed":
            return TenantRemoved(tenant=tenant)
        case "request_cancelled":
            session, request = _text(fields["session"]), _text(fields["request"])
            return RequestCancelled(tenant=tenant, session=session, request=request)
        case "resource_updated":
            return ResourceUpdated(tenant=tenant, uri=_text(fields["uri"]))
        case "template_changed":
            return TemplateChanged(tenant=tenant, template=_text(fields["template"]))
        case _:
            return None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("not a whole number")
    return value
