"""A cursor belongs to the caller that received it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.identifiers import TenantId
from gateway.errors import InvalidCursor
from gateway.registry.cursors import Cursors

A, B = TenantId("ten_a"), TenantId("ten_b")
_text = st.text(min_size=1, max_size=64).filter(lambda text: text.isprintable())


@given(last=_text)
def test_a_cursor_opens_to_its_content(last: str) -> None:
    """Ours: a cursor is the name after which the list goes on (RES-3)."""
    cursors = Cursors(b"k" * 32)

    assert cursors.open(A, "default", "tools", cursors.mint(A, "default", "tools", last)) == last


@pytest.mark.parametrize(
    ("tenant", "profile", "listing"), [(B, "default", "tools"), (A, "other", "tools"), (A, "default", "prompts")]
)
def test_a_cursor_is_invalid_elsewhere(tenant: TenantId, profile: str, listing: str) -> None:
    """Ours: tenant, profile and list are part of what is signed (RES-3)."""
    cursors = Cursors(b"k" * 32)
    cursor = cursors.mint(A, "default", "tools", "pets")

    with pytest.raises(InvalidCursor):
        cursors.open(tenant, profile, listing, cursor)


@given(forged=st.text(max_size=200))
def test_a_foreign_cursor_is_refused(forged: str) -> None:
    """Ours: no text that a client makes up is a cursor (RES-3)."""
    with pytest.raises(InvalidCursor):
        Cursors(b"k" * 32).open(A, "default", "tools", forged)


def test_another_key_refuses_it() -> None:
    """Ours: cursors are signed."""
    cursor = Cursors(b"k" * 32).mint(A, "default", "tools", "pets")

    with pytest.raises(InvalidCursor):
        Cursors(b"x" * 32).open(A, "default", "tools", cursor)


def test_a_cursor_of_an_older_key_is_opened() -> None:
    """Ours: a client goes on with its page while the secret key is replaced (IDN-5, RES-3)."""
    cursor = Cursors(b"o" * 32).mint(A, "default", "tools", "pets")
    assert Cursors(b"n" * 32, b"o" * 32).open(A, "default", "tools", cursor) == "pets"
    with pytest.raises(InvalidCursor):
        Cursors(b"n" * 32).open(A, "default", "tools", cursor)
