"""Client ID metadata documents: what is fetched from where, how much of it, and which client comes of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import ClientRefused
from gateway.domain.tenancy.grants import ClientKind
from gateway.errors import LimitExceeded
from gateway.identity.oauth import client_documents
from gateway.identity.oauth.client_documents import ClientDocuments, is_document_url
from gateway.upstream.client import UpstreamClient
from tests.support.certificates import self_signed
from tests.support.upstream import RecordingUpstream, recording_upstream

ACME, OTHER = TenantId("ten_acme"), TenantId("ten_other")
BACK = "https://client.example/callback"
_BY_KEY = {"token_endpoint_auth_method": "private_key_jwt"}


@dataclass(frozen=True, slots=True)
class Place:
    """The gateway's documents, and the server that has one."""

    documents: ClientDocuments
    server: RecordingUpstream

    @property
    def url(self) -> str:
        """The URL of a document, which is the client's id."""
        return f"https://{self.server.authority}/client.json"

    def publish(self, **more: Any) -> None:
        """Answer with this document; a member of None is left out."""
        members = {"client_id": self.url, "client_name": "A client", "redirect_uris": [BACK], **more}
        self.server.body = orjson.dumps({name: value for name, value in members.items() if value is not None})

    async def refusal(self, url: str | None = None, tenant: TenantId = ACME) -> str:
        """The reason for which there is no client."""
        with pytest.raises(ClientRefused) as refused:
            await self.documents.find(tenant, url or self.url)
        return refused.value.message


@asynccontextmanager
async def _serving(certificate: Path, *, is_allowed: bool) -> AsyncGenerator[Place]:
    async with recording_upstream(certificate) as server:
        allowed = [server.authority] if is_allowed else []
        async with UpstreamClient(egress_allow=allowed) as upstream:
            place = Place(ClientDocuments(upstream), server)
            place.publish()
            yield place


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate that the gateway trusts."""
    made = self_signed(tmp_path, "client.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(made))
    return made


@pytest.fixture
async def place(certificate: Path) -> AsyncGenerator[Place]:
    """A server that the operator permits, with a document."""
    async with _serving(certificate, is_allowed=True) as place:
        yield place


async def test_a_client_is_what_its_document_says(place: Place) -> None:
    """MCP: the document is fetched once in ten minutes, for each tenant apart (IDN-2)."""
    for tenant in (ACME, ACME, OTHER):
        client = await place.documents.find(tenant, place.url)

    assert (client.id, client.name, client.redirect_uris) == (place.url, "A client", (BACK,))
    assert (client.kind, client.is_confidential) == (ClientKind.DOCUMENT, False)
    assert [seen.target for seen in place.server.seen] == ["/client.json"] * 2
    assert place.server.seen[0].header("authorization") is None


async def test_a_client_that_authenticates_by_choice_is_a_public_one(place: Place) -> None:
    """Ours: a document that prefers a signed assertion, and lists `none`, is that of a public client (IDN-2)."""
    place.publish(
        **_BY_KEY,
        token_endpoint_auth_methods_supported=["private_key_jwt", "none"],
        jwks_uri=f"https://{place.server.authority}/keys",
    )

    client = await place.documents.find(ACME, place.url)

    assert (client.kind, client.is_confidential) == (ClientKind.DOCUMENT, False)
    assert [seen.target for seen in place.server.seen] == ["/client.json"]


FLAWS: list[tuple[dict[str, Any], str]] = [
    ({"client_id": "https://bank.example/client.json"}, "of another client"),
    ({"client_id": None}, "of another client"),
    ({"token_endpoint_auth_method": "client_secret_post"}, "Supported is none"),
    ({**_BY_KEY, "token_endpoint_auth_methods_supported": ["private_key_jwt"]}, "Supported is none"),
    ({**_BY_KEY, "token_endpoint_auth_methods_supported": "none"}, "Supported is none"),
    ({**_BY_KEY, "token_endpoint_auth_methods_supported": [["none"], None]}, "Supported is none"),
    ({"client_secret": "x"}, "not supported"),
    ({"redirect_uris": []}, "redirect_uris"),
    ({"redirect_uris": [BACK] * 21}, "redirect_uris"),
    ({"redirect_uris": [BACK, 7]}, "redirect_uris"),
    ({"redirect_uris": ["javascript:alert(1)"]}, "own"),
    ({"redirect_uris": ["http://client.example/"]}, "https"),
    ({"padding": "x" * 33_000}, "more than 32768 bytes"),
]


@pytest.mark.parametrize(("members", "reason"), FLAWS)
async def test_a_document_that_is_not_the_clients_own_or_too_much_is_refused(
    place: Place, members: dict[str, Any], reason: str
) -> None:
    """Ours: forged, huge and hostile documents make no client; the reason is kept for half a minute (IDN-2)."""
    place.publish(**members)

    assert reason in await place.refusal()
    place.publish()
    assert reason in await place.refusal()
    assert len(place.server.seen) == 1


async def test_neither_errors_nor_redirects_nor_other_contents_are_clients(place: Place) -> None:
    """Ours: a redirect is not followed, so it leads to no place inside (SSRF, IDN-2)."""
    place.server.headers = (("location", f"https://{place.server.authority}/secret"),)
    for status in (302, 404, 500):
        place.server.status = status
        assert str(status) in await place.refusal(f"{place.url}/{status}")
    place.server.status = 200
    for number, body in enumerate((b"", b"[]", b'{"a":' * 500, b"\xff")):
        place.server.body = body
        assert "no JSON object" in await place.refusal(f"{place.url}/body/{number}")
    assert not [seen for seen in place.server.seen if seen.target == "/secret"]


async def test_a_place_inside_is_not_dialled(certificate: Path) -> None:
    """Ours: no client id makes the gateway connect to a private address (SSRF, ISO-5, IDN-2)."""
    async with _serving(certificate, is_allowed=False) as place:
        for host in ("127.0.0.1", "localhost", "0.0.0.0", "127.1"):  # an address that is refused
            await place.refusal(f"https://{host}:{place.server.port}/client.json")
        await place.refusal("https://169.254.169.254/latest/meta-data")
        assert place.server.seen == []


async def test_a_document_that_does_not_end_is_given_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a slow server holds a place for a bounded time (IDN-2)."""
    monkeypatch.setattr(client_documents, "_FETCH_S", 0.05)
    place.server.gate = anyio.Event()  # type: ignore[assignment]  # only `wait` and `set` are used

    with anyio.fail_after(5):
        assert "in time" in await place.refusal()


async def test_a_tenant_fetches_at_a_bounded_rate(place: Place) -> None:
    """Ours: made-up client ids are no way to send requests in the gateway's name (ISO-6, IDN-2)."""
    place.server.status = 404
    for number in range(30):
        await place.refusal(f"{place.url}/{number}")

    with pytest.raises(LimitExceeded):
        await place.documents.find(ACME, f"{place.url}/30")
    await place.refusal(f"{place.url}/30", OTHER)


@pytest.mark.parametrize(
    ("client_id", "is_url"),
    [
        ("https://client.example/client.json", True),
        ("https://client.example:8443/a/b", True),
        ("http://client.example/client.json", False),
        ("https://client.example", False),
        ("https://client.example/", False),
        ("https://client.example/a/../b", False),
        ("https://client.example/a#b", False),
        ("https://client.example/a?b", False),
        ("https://user@client.example/a", False),
        ("https://CLIENT.example/a", False),
        ("https://client.example/%2e%2e/a", False),
        ("https://\N{CYRILLIC SMALL LETTER A}.example/a", False),
        (f"https://client.example/{'a' * 300}", False),
    ],
)
def test_a_client_id_that_another_could_equal_is_no_url(client_id: str, is_url: bool) -> None:
    """Client ID metadata documents §3: https, a path, no fragment, user or dot segments (IDN-2)."""
    assert is_document_url(client_id) is is_url
