"""Messages of a channel that are believed."""

import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.events import (
    ApprovalChanged,
    CatalogMoved,
    Event,
    IssuerChanged,
    KeyChanged,
    LiveSourceChanged,
    ResourceUpdated,
    SessionEnded,
    TemplateChanged,
    TenantRemoved,
)
from gateway.domain.identifiers import ApprovalId, KeyId, LiveSourceId, TenantId
from gateway.redis.envelopes import Envelope, MessageRefused

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
EVENTS: list[Event] = [
    CatalogMoved(tenant=ACME, revision=7),
    KeyChanged(tenant=ACME, key=KeyId("key_1")),
    KeyChanged(tenant=ACME, key=KeyId("key_1"), kept=(3, 4)),
    IssuerChanged(tenant=ACME),
    SessionEnded(tenant=ACME, session="s" * 43),
    TenantRemoved(tenant=ACME),
    ResourceUpdated(tenant=ACME, uri="docs://ключ?x=y"),
    TemplateChanged(tenant=ACME, template="docs://ключ/{x}"),
    LiveSourceChanged(tenant=ACME, source=LiveSourceId("liv_1")),
    ApprovalChanged(tenant=ACME, approval=ApprovalId("apr_1")),
]


def _envelope(namespace: str = "gw", secret: bytes = b"secret") -> Envelope:
    return Envelope(namespace=namespace, secret=secret)


def _forge(channel: bytes, fields: object, secret: bytes = b"secret") -> bytes:
    payload = json.dumps(fields).encode()
    return hmac.digest(secret, channel + b"\0" + payload, "sha256")[:16] + payload


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_comes_back_unchanged(event: Event) -> None:
    """Ours: the others receive what one replica sends."""
    channel, message = _envelope().seal(event)

    assert channel == "gw:t:ten_acme:events"
    assert _envelope().open(channel.encode(), message) == event


@pytest.mark.parametrize("event", EVENTS)
def test_a_message_on_another_tenants_channel_is_refused(event: Event) -> None:
    """Ours: an event cannot be carried over to another tenant (TEN-5)."""
    _, message = _envelope().seal(event)

    with pytest.raises(MessageRefused, match="mac"):
        _envelope().open(b"gw:t:ten_globex:events", message)


def test_a_payload_that_names_another_tenant_is_refused() -> None:
    """Ours: the channel's tenant counts, even under a good MAC (TEN-5)."""
    channel = b"gw:t:ten_globex:events"
    message = _forge(channel, {"tenant": "ten_acme", "kind": "catalog_moved", "revision": 8})

    with pytest.raises(MessageRefused, match="tenant"):
        _envelope().open(channel, message)


def test_another_secret_or_namespace_is_refused() -> None:
    """Ours: two gateways in one Redis do not receive each other's messages."""
    channel, message = _envelope().seal(EVENTS[0])

    for envelope in (_envelope(secret=b"other"), _envelope(secret=b"")):
        with pytest.raises(MessageRefused, match="mac"):
            envelope.open(channel.encode(), message)
    with pytest.raises(MessageRefused, match="tenant"):
        _envelope(namespace="other").open(channel.encode(), message)


def test_every_bit_counts() -> None:
    """Ours: no byte of a message can be changed unseen."""
    channel, message = _envelope().seal(EVENTS[0])

    for index in range(len(message)):
        changed = message[:index] + bytes([message[index] ^ 1]) + message[index + 1 :]
        with pytest.raises(MessageRefused):
            _envelope().open(channel.encode(), changed)


@pytest.mark.parametrize(
    "fields",
    [
        None,
        [],
        {},
        {"tenant": 1},
        {"tenant": "ten_acme"},
        {"tenant": "ten_acme", "kind": "catalog_moved"},
        {"tenant": "ten_acme", "kind": "catalog_moved", "revision": "8"},
        {"tenant": "ten_acme", "kind": "catalog_moved", "revision": True},
        {"tenant": "ten_acme", "kind": "key_changed", "key": None},
        {"tenant": "ten_acme", "kind": "session_ended", "session": 1},
    ],
)
def test_a_wrong_form_is_refused(fields: object) -> None:
    """Ours: even a replica with a bug cannot break the others."""
    channel = b"gw:t:ten_acme:events"

    with pytest.raises(MessageRefused):
        _envelope().open(channel, _forge(channel, fields))


def test_a_kind_of_a_newer_replica_is_no_event() -> None:
    """Ours: replicas of two versions may run side by side."""
    channel = b"gw:t:ten_acme:events"

    assert _envelope().open(channel, _forge(channel, {"tenant": "ten_acme", "kind": "moon_landed"})) is None


@given(st.binary(max_size=100))
def test_no_bytes_break_the_reader(message: bytes) -> None:
    """Ours: a foreign message is refused, whatever its form."""
    with pytest.raises(MessageRefused):
        _envelope().open(b"gw:t:ten_acme:events", message)


def test_the_pattern_takes_the_namespace_literally() -> None:
    """Ours: a namespace with glob characters does not listen to its neighbours."""
    assert _envelope("gw").pattern == "gw:t:*:events"
    assert _envelope("a*[b]?").pattern == r"a\*\[b\]\?:t:*:events"
