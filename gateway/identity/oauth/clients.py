"""Lookup of the OAuth clients of a tenant: registered clients, and clients with a metadata document."""

import hashlib
import hmac
from datetime import UTC, datetime
from urllib.parse import urlsplit

from gateway.catalog.identity.oauth_clients import find_client
from gateway.catalog.transaction import CatalogContext
from gateway.domain.http.client_network import client_network
from gateway.domain.refusals import ClientRefused
from gateway.domain.tenancy.grants import ClientKind, ClientStatus, OAuthClient
from gateway.domain.tenancy.issuers import SignInClient, TenantIssuers
from gateway.identity.oauth.client_documents import ClientDocuments, is_document_url
from gateway.identity.oauth.limits import MAX_CLIENT_ID_LENGTH


class ClientDirectory:
    """Finds OAuth clients by id."""

    def __init__(self, catalog: CatalogContext, documents: ClientDocuments) -> None:
        self._catalog = catalog
        self._documents = documents

    async def find(self, found: TenantIssuers, client_id: str, *, address: str) -> OAuthClient:
        """Return the client with this id, for a person's browser at this address.

        Raises:
            ClientRefused: the client is unknown, or its document's host is not permitted.
            LimitExceeded: the address or the tenant fetches too many documents.
            Unavailable: the client's document, or the stored client, cannot be read now.
        """
        if is_document_url(client_id):
            check_host(found, client_id)
            return await self._documents.find(found.tenant, client_id, network=client_network(address))
        return await self._find_stored(found, client_id)

    async def find_for_tokens(self, found: TenantIssuers, client_id: str) -> OAuthClient:
        """Return the client of a request to the token or revocation endpoint, without a fetch of its document.

        A client with a document is public, and each of its codes and tokens belongs to a grant that names it. So an
        outage of its host, or a flood of made-up client ids, cannot end the sign-in of a person.

        Raises:
            ClientRefused: the client is unknown, or its document's host is not permitted.
            DatabaseUnavailable: the stored client cannot be read now.
        """
        if not is_document_url(client_id):
            return await self._find_stored(found, client_id)
        check_host(found, client_id)
        return OAuthClient(
            id=client_id,
            name="",
            redirect_uris=(),
            created_at=datetime.now(UTC),
            status=ClientStatus(kind=ClientKind.DOCUMENT),
        )

    async def _find_stored(self, found: TenantIssuers, client_id: str) -> OAuthClient:
        stored = (
            await find_client(found.tenant, self._catalog, client_id)
            if len(client_id) <= MAX_CLIENT_ID_LENGTH
            else None
        )
        if stored is None:
            raise ClientRefused(
                "The application is not known here. It must register again, or its client_id must be the https URL"
                " of its metadata document."
            )
        return stored


def accepts_documents(found: TenantIssuers) -> bool:
    """True if some issuer of the tenant permits a host of client metadata documents."""
    return any(client.client_hosts is None or client.client_hosts for client in _sign_in_clients(found))


def _sign_in_clients(found: TenantIssuers) -> list[SignInClient]:
    return [issuer.sign_in for issuer in found.issuers if issuer.sign_in is not None]


def check_host(found: TenantIssuers, client_id: str) -> None:
    """Refuse a client id whose document is at a host that no issuer of the tenant permits.

    Raises:
        ClientRefused: every issuer limits the hosts, and none permits this host.
    """
    clients = _sign_in_clients(found)
    host = (urlsplit(client_id).hostname or "").lower()
    if not any(client.client_hosts is None or host in client.client_hosts for client in clients):  # guard: client-hosts
        raise ClientRefused("The tenant does not permit applications of this host; ask the tenant's administrator.")


def is_secret(client: OAuthClient, presented: str | None) -> bool:
    """True if the client is confidential, and the presented secret is correct."""
    if client.secret is None or presented is None:
        return False
    return hmac.compare_digest(digest_secret(presented), client.secret)  # guard: client-secret


def digest_secret(secret: str) -> bytes:
    """Return the digest that is stored in place of a client's secret of 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
