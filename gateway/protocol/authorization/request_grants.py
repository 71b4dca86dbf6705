"""The grants of one tenant for one request of a client, in the form that the SDK's provider needs."""

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from mcp.server.auth.provider import AuthorizationParams, AuthorizeError
from mcp.shared.auth import OAuthClientInformationFull

from gateway.catalog.identity.grants import end_grant, find_grant, redeem_code
from gateway.catalog.identity.oauth_clients import enter_client
from gateway.catalog.transaction import CatalogContext
from gateway.domain.tenancy.grant_secrets import Presented
from gateway.domain.tenancy.grants import ClientKind, ClientStatus, Grant, OAuthClient
from gateway.domain.tenancy.issuers import TenantIssuers
from gateway.identity.access_tokens import TokenRejected
from gateway.identity.issued_tokens import IssuedTokens
from gateway.identity.oauth.clients import digest_secret
from gateway.identity.oauth.limits import MAX_STATE_LENGTH
from gateway.identity.oauth.requests import CHALLENGE, AuthorizationRequest, SealedRequests, canonical, read_scopes
from gateway.identity.oauth.tokens import TokenIssue, TokenSet, UsableGrant
from gateway.identity.people import People, Resource, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationParts:
    """The components of the authorization server that all requests use."""

    catalog: CatalogContext
    people: People
    requests: SealedRequests
    tokens: TokenIssue
    issued: IssuedTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGrants:
    """The grants of a tenant; `redirect_uris` are those of the request, unchanged."""

    parts: AuthorizationParts
    found: TenantIssuers
    slug: str
    origin: str
    correlation_id: str
    client: str = ""
    redirect_uris: tuple[str, ...] = ()

    @property
    def issuer(self) -> str:
        """The identifier of the tenant's authorization server."""
        return f"{self.origin}/t/{self.slug}"

    async def redeem_code(self, presented: Presented) -> UsableGrant | None:
        """Redeem an authorization code; a second use revokes the grant."""
        tenant, correlation_id = self.found.tenant, self.correlation_id
        found = await redeem_code(tenant, self.parts.catalog, presented, correlation_id=correlation_id)
        return None if found is None else UsableGrant(grant=found[0], stored=found[1])

    async def look_up(self, presented: Presented, thumbprint: str | None) -> UsableGrant | None:
        """Return the grant of a valid refresh token; `thumbprint` is that of the key that the client proved."""
        look_up = self.parts.tokens.look_up
        return await look_up(self.found.tenant, presented, thumbprint=thumbprint, correlation_id=self.correlation_id)

    async def issue(self, usable: UsableGrant) -> TokenSet | None:
        """Issue the next tokens of a grant."""
        issue = self.parts.tokens.issue
        return await issue(self.found, usable, issuer=self.issuer, correlation_id=self.correlation_id)

    async def find_issued(self, text: str) -> Grant | None:
        """Return the grant of an access token that is valid at its resource."""
        try:
            token = self.parts.issued.verify(text, issuer=self.issuer, audience=None)
        except TokenRejected:
            return None
        found = await find_grant(self.found.tenant, self.parts.catalog, token.grant)
        return None if found is None else found[0]

    async def revoke(self, grant: Grant) -> None:
        """Revoke a grant at its client's request (RFC 7009)."""
        tenant, correlation_id = self.found.tenant, self.correlation_id
        await end_grant(tenant, self.parts.catalog, grant, "its client gave it back", correlation_id=correlation_id)

    def begin(self, params: AuthorizationParams) -> str:
        """Return the path of the consent page for a request.

        Raises:
            AuthorizeError: the challenge, the state or the resource is invalid.
        """
        if not CHALLENGE.fullmatch(params.code_challenge):  # guard: pkce-challenge
            raise AuthorizeError("invalid_request", "code_challenge must be one of the method S256")
        state = params.state
        if state is not None and not (len(state) <= MAX_STATE_LENGTH and state.isascii() and state.isprintable()):
            raise AuthorizeError("invalid_request", f"state must have at most {MAX_STATE_LENGTH} printable characters")
        resource = self._resource(params.resource)
        if resource is None:
            raise AuthorizeError("invalid_target", f"resource must be an MCP URL below {self.issuer}")
        request = AuthorizationRequest(
            tenant=self.found.tenant,
            client=self.client,
            redirect_uri=self.redirect_uris[0],
            state=state,
            code_challenge=params.code_challenge,
            resource=resource.url,
            profile=resource.profile,
            scopes=read_scopes(self.found, " ".join(params.scopes or ())),
        )
        return f"/t/{self.slug}/oauth/consent?request={quote(self.parts.requests.write(request))}"

    async def register(self, client: OAuthClientInformationFull) -> None:
        """Store a client that registers itself.

        Raises:
            LimitExceeded: the tenant has too many registered clients.
        """
        new_client = OAuthClient(
            id=client.client_id,
            confidential=client.client_secret is not None,
            name=client.client_name or "",
            redirect_uris=self.redirect_uris,
            secret=None if client.client_secret is None else digest_secret(client.client_secret),
            created_at=datetime.now(UTC),
            status=ClientStatus(kind=ClientKind.DYNAMIC),
        )
        await enter_client(self.found.tenant, self.parts.catalog, new_client)

    def _resource(self, wanted: str | None) -> Resource | None:
        """Return the resource of a request: the tenant's URL, or the one that the request names; None if it is
        not a valid resource.
        """
        text, origin = canonical(wanted or f"{self.issuer}/mcp"), canonical(self.origin)
        if not text.startswith(f"{origin}/"):
            return None
        found = self.parts.people.resource_of(Target(self.origin, text.removeprefix(origin)))
        return found if found is not None and found.slug == self.slug else None  # guard: resource-tenant
