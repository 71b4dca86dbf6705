"""Sealing: ciphertexts that open, and those that do not."""

import pytest

from gateway.domain.identifiers import TenantId
from gateway.errors import BrokenSetting, SecretUnreadable
from gateway.store.encryption import EnvelopeCipher

_OLD, _NEW = "old" * 11, "new" * 11
_TENANT = TenantId("ten_a")
_PLACE = ("src_1", "api_key", "1")


def test_a_sealed_value_opens_in_its_place_and_differs_each_time() -> None:
    """Ours: sealing is not deterministic, and the plain value is not in it."""
    sealer = EnvelopeCipher([_OLD])
    wrapped = sealer.new_tenant_key(_TENANT)
    sealed = [sealer.seal(_TENANT, wrapped, b"secret", *_PLACE) for _ in range(2)]

    assert [sealer.open(_TENANT, wrapped, each, *_PLACE) for each in sealed] == [b"secret"] * 2
    assert sealed[0] != sealed[1]
    assert b"secret" not in sealed[0]


@pytest.mark.parametrize(
    "place",
    [("src_2", "api_key", "1"), ("src_1", "other", "1"), ("src_1", "api_key", "2"), ("src_1a", "pi_key", "1"), ()],
)
def test_a_value_moved_to_another_place_does_not_open(place: tuple[str, ...]) -> None:
    """Ours: source, scheme and version are bound to the value."""
    sealer = EnvelopeCipher([_OLD])
    wrapped = sealer.new_tenant_key(_TENANT)

    with pytest.raises(SecretUnreadable):
        sealer.open(_TENANT, wrapped, sealer.seal(_TENANT, wrapped, b"secret", *_PLACE), *place)


def test_a_tenant_opens_neither_the_data_key_nor_the_value_of_another() -> None:
    """Ours: the tenant is bound to both."""
    sealer, other = EnvelopeCipher([_OLD]), TenantId("ten_b")
    wrapped, others = sealer.new_tenant_key(_TENANT), sealer.new_tenant_key(other)
    sealed = sealer.seal(_TENANT, wrapped, b"secret", *_PLACE)

    with pytest.raises(SecretUnreadable):
        sealer.open(other, wrapped, sealed, *_PLACE)
    with pytest.raises(SecretUnreadable):
        sealer.open(other, others, sealed, *_PLACE)


def test_any_changed_byte_is_noticed() -> None:
    """Ours: no changed ciphertext opens, and the error does not contain its content."""
    sealer = EnvelopeCipher([_OLD])
    wrapped = sealer.new_tenant_key(_TENANT)
    sealed = sealer.seal(_TENANT, wrapped, b"secret", *_PLACE)

    for position in range(len(sealed)):
        changed = bytearray(sealed)
        changed[position] ^= 1
        with pytest.raises(SecretUnreadable):
            sealer.open(_TENANT, wrapped, bytes(changed), *_PLACE)
    for short in (b"", sealed[:1], sealed[:12], sealed[:-1]):
        with pytest.raises(SecretUnreadable):
            sealer.open(_TENANT, wrapped, short, *_PLACE)


def test_keys_are_exchanged_without_losing_anything() -> None:
    """Ours: with the new key first both open; once rewrapped the old key can go, and before that it cannot."""
    old, both, new = EnvelopeCipher([_OLD]), EnvelopeCipher([_NEW, _OLD]), EnvelopeCipher([_NEW])
    wrapped = old.new_tenant_key(_TENANT)
    sealed = old.seal(_TENANT, wrapped, b"secret", *_PLACE)

    assert both.open(_TENANT, wrapped, sealed, *_PLACE) == b"secret"
    assert not both.is_current(wrapped)
    assert not new.can_open(wrapped)
    with pytest.raises(SecretUnreadable):
        new.open(_TENANT, wrapped, sealed, *_PLACE)

    rewrapped = both.rewrap(_TENANT, wrapped)
    assert both.is_current(rewrapped)
    assert new.open(_TENANT, rewrapped, sealed, *_PLACE) == b"secret"
    with pytest.raises(SecretUnreadable):
        old.open(_TENANT, rewrapped, sealed, *_PLACE)


def test_a_derived_key_has_one_purpose() -> None:
    """Ours: no two purposes and no two secret keys share a key, and none of them wraps data keys."""
    sealer = EnvelopeCipher([_NEW, _OLD])
    keys = {sealer.derive("pepper"), sealer.derive("audit"), sealer.derive("wrap"), *sealer.derive_all("cursors")}

    assert len(keys) == 5
    assert {len(key) for key in keys} == {32}
    assert sealer.derive_all("pepper") == (
        EnvelopeCipher([_NEW]).derive("pepper"),
        EnvelopeCipher([_OLD]).derive("pepper"),
    )


def test_a_sealer_shows_no_key() -> None:
    """Ours: nothing that is printed holds a key."""
    assert repr(EnvelopeCipher([_OLD])) == "<EnvelopeCipher with 1 keys>"


@pytest.mark.parametrize("keys", [[], [""], [_OLD, ""]])
def test_a_sealer_needs_keys(keys: list[str]) -> None:
    """Ours: an empty key is a setting that was forgotten."""
    with pytest.raises(BrokenSetting, match="GATEWAY_SECRET_KEYS"):
        EnvelopeCipher(keys)
