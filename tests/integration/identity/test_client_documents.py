"""Client ID metadata documents: the fetched URL, its size limit, and the resulting client."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import ClientRefused
from gateway.domain.tenancy.grants import ClientKind, OAuthClient
from gateway.errors import GatewayError, LimitExceeded, Unavailable
from gateway.identity.oauth import client_documents
from gateway.identity.oauth.client_documents import ClientDocuments, is_document_url
from gateway.upstream.client import UpstreamClient
from tests.support.certificates import self_signed
from tests.support.upstream import RecordingUpstream, recording_upstream

ACME, OTHER = TenantId("ten_acme"), TenantId("ten_other")
STRANGER, COLLEAGUE = "192.0.2.1", "198.51.100.1"
BACK = "https://client.example/callback"
_BY_KEY = {"token_endpoint_auth_method": "private_key_jwt"}


@dataclass(frozen=True, slots=True)
class Place:
    """The gateway's documents, and the server that has one."""

    documents: ClientDocuments
    server: RecordingUpstream
    known: set[tuple[TenantId, str]]
    """The clients that people use."""

    @property
    def url(self) -> str:
        """The URL of a document, which is the client's id."""
        return f"https://{self.server.authority}/client.json"

    def publish(self, **more: Any) -> None:
        """Answer with this document; a member of None is left out."""
        members = {"client_id": self.url, "client_name": "A client", "redirect_uris": [BACK], **more}
        self.server.body = orjson.dumps({name: value for name, value in members.items() if value is not None})

    async def find(self, url: str | None = None, tenant: TenantId = ACME, network: str = STRANGER) -> OAuthClient:
        """The client of a document, for a request of this network."""
        return await self.documents.find(tenant, url or self.url, network=network)

    async def refusal(
        self,
        url: str | None = None,
        tenant: TenantId = ACME,
        *,
        error: type[GatewayError] = ClientRefused,
        network: str = STRANGER,
    ) -> str:
        """The reason for which there is no client."""
        with pytest.raises(error) as refused:
            await self.find(url, tenant, network)
        return refused.value.message

    async def flood(self) -> None:
        """Requests with made-up client ids, from so many networks that the tenant fetches no further one."""
        for number in range(40):
            with pytest.raises(GatewayError):
                await self.find(f"{self.url}/made-up/{number}", network=f"192.0.2.{number // 5}")


@asynccontextmanager
async def _serving(certificate: Path, *, is_allowed: bool) -> AsyncGenerator[Place]:
    async with recording_upstream(certificate) as server:
        allowed = [server.authority] if is_allowed else []
        async with UpstreamClient(egress_allow=allowed) as upstream:
            known = set[tuple[TenantId, str]]()

            async def is_known(tenant: TenantId, url: str) -> bool:
                return (tenant, url) in known

            place = Place(ClientDocuments(upstream, is_known), server, known)
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


async def test_a_client_is_described_by_its_document(place: Place) -> None:
    """MCP: the document is fetched once in ten minutes, for each tenant apart (IDN-2)."""
    for tenant in (ACME, ACME, OTHER):
        client = await place.find(tenant=tenant)

    assert (client.id, client.name, client.redirect_uris) == (place.url, "A client", (BACK,))
    assert (client.status.kind, client.is_confidential) == (ClientKind.DOCUMENT, False)
    assert [seen.target for seen in place.server.seen] == ["/client.json"] * 2
    assert place.server.seen[0].header("authorization") is None


async def test_a_client_that_authenticates_by_choice_is_a_public_one(place: Place) -> None:
    """Ours: a document that prefers a signed assertion, and lists `none`, is that of a public client (IDN-2)."""
    place.publish(
        **_BY_KEY,
        token_endpoint_auth_methods_supported=["private_key_jwt", "none"],
        jwks_uri=f"https://{place.server.authority}/keys",
    )

    client = await place.find()

    assert (client.status.kind, client.is_confidential) == (ClientKind.DOCUMENT, False)
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
    for status, error in ((302, ClientRefused), (404, ClientRefused), (429, Unavailable), (500, Unavailable)):
        place.server.status = status
        assert str(status) in await place.refusal(f"{place.url}/{status}", error=error)
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


async def test_a_document_that_does_not_end_times_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a slow server holds a place for a bounded time (IDN-2)."""
    monkeypatch.setattr(client_documents, "DOCUMENT_FETCH_S", 0.05)
    place.server.gate = anyio.Event()  # type: ignore[assignment]  # only `wait` and `set` are used

    with anyio.fail_after(5):
        assert "in time" in await place.refusal(error=Unavailable)


async def test_a_tenant_fetches_at_a_bounded_rate(place: Place) -> None:
    """Ours: made-up client ids are no way to send requests in the gateway's name (ISO-6, IDN-2)."""
    place.server.status = 404
    await place.flood()

    assert len(place.server.seen) == 30
    await place.refusal(f"{place.url}/made-up/40", network=COLLEAGUE, error=LimitExceeded)
    await place.refusal(f"{place.url}/made-up/40", OTHER)


async def test_made_up_clients_of_one_network_keep_none_of_another_out(place: Place) -> None:
    """Ours: a flood from one address leaves fetches for people at others, also of a new client (TEN-3, IDN-2)."""
    place.server.status = 404
    for number in range(8):
        await place.refusal(f"{place.url}/{number}")
    await place.refusal(f"{place.url}/8", error=LimitExceeded)

    place.server.status = 200
    assert (await place.find(network=COLLEAGUE)).id == place.url


async def test_a_known_client_signs_in_during_a_flood_of_made_up_ones(place: Place) -> None:
    """Ours: neither used-up rates nor hanging hosts of made-up ids delay a client that people use (TEN-3, IDN-2)."""
    place.known.add((ACME, place.url))
    await place.flood()
    _, others = place.documents.slot_pools
    async with AsyncExitStack() as hanging:
        for _ in range(others.share):
            await hanging.enter_async_context(others.hold(ACME))

        with anyio.fail_after(3):
            assert (await place.find()).id == place.url


async def test_known_clients_are_fetched_at_a_bounded_rate(place: Place) -> None:
    """Ours: a tenant whose people use many clients sends a bounded number of requests (ISO-6, IDN-2)."""
    place.server.status = 404
    urls = [f"{place.url}/{number}" for number in range(31)]
    place.known.update((ACME, url) for url in urls)
    for url in urls[:30]:
        await place.refusal(url)

    await place.refusal(urls[30], error=LimitExceeded)


async def test_a_client_outlasts_an_outage_of_its_host(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the last document counts while its host is away or the rate is used up, for a day at most (IDN-2)."""
    monkeypatch.setattr(client_documents, "DOCUMENT_FRESH_S", -1.0)
    found = await place.find()
    place.server.status = 404
    await place.flood()
    assert await place.find() == found
    place.known.add((ACME, place.url))
    place.server.status = 503
    assert await place.find() == found
    sent = len(place.server.seen)
    assert await place.find() == found
    assert len(place.server.seen) == sent  # the next try is half a minute later

    place.server.status = 200
    await place.find(tenant=OTHER)
    place.server.status = 503
    monkeypatch.setattr(client_documents, "DOCUMENT_STALE_S", 0.0)
    assert "503" in await place.refusal(tenant=OTHER, error=Unavailable)


async def test_a_client_ends_with_its_document(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a document that its host has deleted counts no more, also in a later outage (IDN-2)."""
    monkeypatch.setattr(client_documents, "DOCUMENT_FRESH_S", -1.0)
    monkeypatch.setattr(client_documents, "DOCUMENT_RETRY_S", -1.0)
    await place.find()
    for status, error in ((404, ClientRefused), (503, Unavailable)):
        place.server.status = status
        assert str(status) in await place.refusal(error=error)


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
