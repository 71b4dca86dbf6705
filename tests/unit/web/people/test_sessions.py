"""Cookies of people's sessions: what they are sealed for."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.issuers import TenantIssuers
from gateway.web.html.sealed_cookies import SealedCookies
from gateway.web.people.sessions import PersonSessions

KEY = b"k" * 32
NO_ISSUERS = TenantIssuers(tenant=TenantId("ten_1"), issuers=())


class _Unread:
    """A catalog that must not be read."""

    @property
    def store(self) -> object:
        raise AssertionError("the sign-in was looked up")


def _cookies(*, is_secure: bool) -> dict[str, str]:
    sealed = SealedCookies([KEY], "gateway-person", life_s=60, same_site="Lax")
    header = sealed.write(b"sgn_1 1", is_secure=is_secure, suffix="acme")
    name, _, value = header.partition(";")[0].partition("=")
    return {name: value}


@pytest.mark.parametrize("is_secure", [True, False])
async def test_a_cookie_of_the_other_transport_is_no_session(is_secure: bool) -> None:
    """Ours: a neighbour who can set plain cookies brings no session to a browser that uses TLS (IDN-2)."""
    sessions = PersonSessions([KEY], cast("CatalogContext", cast("Any", _Unread())))

    assert await sessions.find("acme", NO_ISSUERS, _cookies(is_secure=not is_secure), is_secure=is_secure) is None
    with pytest.raises(AssertionError, match="looked up"):
        await sessions.find("acme", NO_ISSUERS, _cookies(is_secure=is_secure), is_secure=is_secure)


def test_a_cookie_has_its_name_sealed_in_and_ends() -> None:
    """Ours: a value under another name or suffix is none, nor is one after its life (IDN-2)."""
    now = datetime.now(UTC).timestamp()
    sealed = SealedCookies([KEY], "c", life_s=60, same_site="Lax", clock=lambda: now)
    value = sealed.write(b"x", is_secure=True, suffix="a").partition(";")[0].partition("=")[2]
    later = SealedCookies([KEY], "c", life_s=60, same_site="Lax", clock=lambda: now + 61)

    assert sealed.read({"__Host-c-a": value}, "a") == (b"x", True)
    for name, suffix in (("c-a", "a"), ("__Host-c-b", "b"), ("__Host-c", "")):
        assert sealed.read({name: value}, suffix) is None
    assert later.read({"__Host-c-a": value}, "a") is None
    assert SealedCookies([b"o" * 32], "c", life_s=60, same_site="Lax").read({"__Host-c-a": value}, "a") is None
