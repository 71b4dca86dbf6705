"""Audiences of the gateway: URLs, further audiences of issuers, and JWTs for one of these."""

from dataclasses import replace

import jwt
import pytest

from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.issuers import TenantIssuers
from gateway.domain.tenancy.principals import Principal
from gateway.errors import DatabaseUnavailable
from gateway.identity.own_audiences import OwnAudiences
from gateway.identity.people import IssuerDirectory
from tests.unit.identity.test_people import BASE, CORP, TENANT, Stored

ADA = Principal(tenant=TENANT, slug="acme", key=KeyId("key_1"), subject="ada", scopes=frozenset())
OTHER = replace(ADA, tenant=TenantId("ten_other"), slug="globex")


def _jwt(audience: object) -> str:
    return jwt.encode({"sub": "ada", "aud": audience}, "k" * 32)


def _own(stored: Stored, public_url: str | None = BASE) -> OwnAudiences:
    return OwnAudiences(IssuerDirectory(stored.find_issuers, interval_s=0.01), public_url=public_url)


@pytest.mark.parametrize(
    ("public_url", "text", "is_own"),
    [
        (BASE, f"{BASE}/t/acme/mcp", True),
        (BASE, f"{BASE}/anything", True),
        (BASE, f"{BASE}.evil.example/t/acme/mcp", False),
        (BASE, "https://[x", False),
        (BASE, _jwt(f"{BASE}/t/acme/mcp"), True),
        (BASE, _jwt(["https://api.example"] * 2000 + [f"{BASE}/t/acme/mcp"]), True),
        (BASE, _jwt("https://api.example"), False),
        (BASE, _jwt({"url": BASE}), False),
        (BASE, "eyJ.eyJ.x", False),
        (BASE, "", False),
        (None, "http://127.0.0.1:8080/t/acme/mcp", True),
        (None, _jwt("http://localhost:8080/admin/v1/tenants/acme"), True),
        (None, "http://127.0.0.1:8080/orders", False),
    ],
)
async def test_urls_of_the_gateway_are_its_audiences(public_url: str | None, text: str, *, is_own: bool) -> None:
    """MCP: by the public URL's host; a gateway without one knows the paths at which it accepts tokens (TEN-4)."""
    assert await _own(Stored(), public_url).include(ADA, text) is is_own


async def test_further_audiences_are_those_of_the_tenants_own_issuers() -> None:
    """Ours: they are read like issuers, count for their tenant, and outlast a database that is away (TEN-4)."""
    stored = Stored()
    further = replace(CORP, audiences=("api://gateway",))
    stored.issuers["acme"] = TenantIssuers(tenant=TENANT, issuers=(CORP, further))
    own = _own(stored)

    for text in ("api://gateway", _jwt(["api://gateway"])):
        assert (await own.include(ADA, text), await own.include(OTHER, text)) == (True, False)
    assert stored.asked_slugs == [["acme"], ["globex"]]


async def test_a_tenant_has_nothing_of_a_former_one_of_its_slug() -> None:
    """Ours: a slug can be given to another tenant while results about the former one are cached (ISO-1)."""
    stored = Stored()
    stored.issuers["acme"] = TenantIssuers(tenant=TENANT, issuers=(replace(CORP, audiences=("api://gateway",)),))
    directory = IssuerDirectory(stored.find_issuers, interval_s=0.01)
    own = OwnAudiences(directory, public_url=BASE)
    assert await own.include(ADA, "api://gateway")

    stored.issuers["acme"] = TenantIssuers(tenant=OTHER.tenant, issuers=(CORP,))
    directory.forget(TENANT)

    assert not await own.include(replace(OTHER, slug="acme"), "api://gateway")


async def test_unknown_audiences_are_no_permission_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: audiences that were read before count on; without them, the call fails instead of sending (TEN-4)."""
    stored = Stored()
    stored.issuers["acme"] = TenantIssuers(tenant=TENANT, issuers=(replace(CORP, audiences=("api://gateway",)),))
    own, unread = _own(stored), _own(stored)
    monkeypatch.setattr("gateway.identity.own_audiences.FRESH_ISSUERS_S", 0.0)
    assert await own.include(ADA, "api://gateway")

    async def is_away(_: IssuerDirectory, __: str) -> None:
        raise DatabaseUnavailable("PostgreSQL does not respond")

    monkeypatch.setattr(IssuerDirectory, "issuers_of", is_away)
    assert await own.include(ADA, _jwt("api://gateway"))
    with pytest.raises(DatabaseUnavailable):
        await unread.include(ADA, _jwt("https://api.example"))
