"""Content of an API key's text, without a lookup."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.tenancy.keys import key_id_of, mint_key


def test_a_minted_key_names_its_id() -> None:
    """Ours: the id inside a key's text is the id of the key."""
    minted = mint_key()

    assert key_id_of(minted.text) == minted.id
    assert minted.id.startswith("key_")


def test_a_minted_key_has_the_documented_form() -> None:
    """Ours: prefix, environment, id, 32 random bytes and a checksum, recognisable to secret scanners."""
    assert re.fullmatch(r"mcpg_live_[0-9a-z]{20}_[A-Za-z0-9-]{43}[0-9a-f]{8}", mint_key().text)
    assert mint_key("test").text.startswith("mcpg_test_")


def test_keys_differ() -> None:
    """Ours: no two keys share an id or a secret."""
    minted = [mint_key() for _ in range(100)]

    assert len({key.id for key in minted}) == 100
    assert len({key.text.split("_")[3] for key in minted}) == 100


@given(st.data())
def test_one_wrong_character_is_noticed(data: st.DataObject) -> None:
    """Ours: the checksum detects a mistyped key, so that the database is never queried for it."""
    text = mint_key().text
    index = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters().filter(lambda character: character != text[index]))

    assert key_id_of(text[:index] + other + text[index + 1 :]) is None


@pytest.mark.parametrize("text", ["", "mcpg", "Bearer x", "mcpg_live__", "mcpg_live_" + "0" * 80, "\ud800", "é" * 90])
def test_a_text_that_is_no_key_has_no_id(text: str) -> None:
    """Ours: any text may be asked about; only keys of ours have an id."""
    assert key_id_of(text) is None


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    """Ours: reading an untrusted credential never raises."""
    assert key_id_of(text) is None


def test_a_line_end_behind_a_key_is_not_ignored() -> None:
    """Ours: a key is the whole text, not a part of it."""
    assert key_id_of(mint_key().text + "\n") is None
