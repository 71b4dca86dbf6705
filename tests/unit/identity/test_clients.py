"""Rules about clients that need no store: permitted hosts, sealed requests, and what the consent page warns of."""

from dataclasses import replace

import pytest

from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import ClientRefused
from gateway.domain.tenancy.grants import ClientKind, ClientStatus, OAuthClient
from gateway.domain.tenancy.issuers import SignInClient, TenantIssuers
from gateway.identity.oauth.clients import check_host
from gateway.identity.oauth.requests import AuthorizationRequest, SealedRequests
from gateway.protocol.authorization.metadata import describe
from gateway.web.people.consent_pages import consent_content
from gateway.web.people.sessions import PersonSession
from tests.integration.store.samples import NOW, make_issuer, make_person, make_sign_in, make_tenant

TENANT = make_tenant()
ISSUER = make_issuer("corp")
PERSON = make_person(TENANT.id, ISSUER)
SESSION = PersonSession(
    issuer=ISSUER,
    sign_in=make_sign_in(ISSUER, PERSON, "corp"),
    person=PERSON,
    tenant=TENANT.id,
    slug="acme",
    is_secure=True,
)
BACK = "https://client.example/callback"
REQUEST = AuthorizationRequest(
    tenant=TENANT.id,
    client="https://client.example/client.json",
    redirect_uri=BACK,
    state=None,
    code_challenge="c" * 43,
    resource="https://gateway.example/t/acme/mcp",
    profile="default",
    scopes=(),
)


def _page(kind: ClientKind, *, id: str, name: str, redirect_uri: str = BACK) -> str:  # noqa: A002  # a client's id
    status = ClientStatus(kind=kind)
    client = OAuthClient(id=id, name=name, redirect_uris=(redirect_uri,), created_at=NOW, status=status)
    asked = replace(REQUEST, client=id, redirect_uri=redirect_uri)
    return consent_content(SESSION, client, asked, token="t", request="r", again="/again")


def test_the_hosts_of_documents_can_be_limited() -> None:
    """Ours: an administrator can name the hosts whose applications people may use (IDN-2)."""
    limited = replace(ISSUER, sign_in=SignInClient(client_id="c", client_hosts=("claude.ai",)))
    of_tenant = TenantIssuers(tenant=TENANT.id, issuers=(limited,))

    check_host(of_tenant, "https://claude.ai/client.json")
    check_host(replace(of_tenant, issuers=(ISSUER,)), "https://client.example/client.json")
    for url in ("https://evil.example/client.json", "https://claude.ai.evil.example/a", "https://claude.ai@evil/a"):
        with pytest.raises(ClientRefused):
            check_host(of_tenant, url)


def test_documents_are_advertised_only_where_some_host_is_permitted() -> None:
    """A fixed bug: clients preferred their document where none is accepted, and never registered (IDN-2)."""
    every, named, none = (SignInClient(client_id="c", client_hosts=hosts) for hosts in (None, ("claude.ai",), ()))
    clients = ((every, True), (named, True), (none, False), (None, False))
    for client, expected in clients:
        found = TenantIssuers(tenant=TENANT.id, issuers=(replace(ISSUER, sign_in=client),))
        described = describe(found, "https://gateway.example/t/acme")
        assert described["client_id_metadata_document_supported"] is expected


def test_a_sealed_request_is_of_one_tenant() -> None:
    """Ours: neither another tenant's request, nor a changed one, nor one of other keys is read (IDN-2)."""
    requests = SealedRequests([b"k" * 32])
    text = requests.write(REQUEST)

    assert requests.read(TENANT.id, text) == REQUEST
    assert SealedRequests([b"n" * 32, b"k" * 32]).read(TENANT.id, text) == REQUEST
    assert requests.read(TenantId("ten_other"), text) is None
    assert requests.read(TENANT.id, f"{text[:-5]}AAAA=") is None
    assert requests.read(TENANT.id, "") is None
    assert SealedRequests([b"n" * 32]).read(TENANT.id, text) is None


def test_forged_metadata_is_marked() -> None:
    """Ours: a name is a claim, in quotes; the hosts and every oddity are shown (phishing, IDN-2)."""
    own = _page(ClientKind.DOCUMENT, id="https://client.example/client.json", name="Client")
    assert "Before you allow" not in own
    assert "<dd><bdi>client.example</bdi></dd>" in own

    other = _page(ClientKind.DOCUMENT, id="https://evil.example/client.json", name="Claude by Anthropic")
    assert "that of evil.example, and sends you to another host: client.example" in other
    assert "<q><bdi>Claude by Anthropic</bdi></q>" in other

    alike = _page(
        ClientKind.DOCUMENT,
        id="https://xn--lient-2we.example/client.json",
        name="Client",
        redirect_uri="https://xn--lient-2we.example/callback",
    )
    assert "letters that can look like others" in alike

    mixed = _page(ClientKind.REGISTERED, id="x", name="\N{CYRILLIC CAPITAL LETTER ES}laude")
    assert "Its name has letters that can look like others." in mixed
    assert "W" * 81 not in _page(ClientKind.REGISTERED, id="x", name="W" * 200)

    hidden = _page(ClientKind.DYNAMIC, id="x", name='\N{RIGHT-TO-LEFT OVERRIDE}tneilc\0\n<script>alert(1)</script>"')
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in hidden
    assert "<script>" not in hidden
    assert "its name was not checked" in hidden
    assert "nothing: it registered itself" in hidden

    program = _page(ClientKind.DYNAMIC, id="x", name="x", redirect_uri="http://127.0.0.1:9/callback")
    assert "as every program on it can" in program
    by_administrator = "the administrator of the tenant, who registered it"
    assert by_administrator not in program
    assert by_administrator in _page(ClientKind.REGISTERED, id="x", name="x")
