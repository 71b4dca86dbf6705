"""The provider object that the SDK's handlers call: one for each request, for a client that was already looked up.

The handlers implement the protocol: parameters and grant types, the comparison of redirect URIs and code verifiers, the
form of responses. The gateway decides what is stored, checked and issued.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl, ValidationError

from gateway.domain.refusals import SignInRefused
from gateway.domain.tenancy.grant_secrets import Presented, read_presented
from gateway.domain.tenancy.grants import Grant, OAuthClient
from gateway.identity.oauth.clients import is_secret
from gateway.identity.oauth.requests import canonical
from gateway.identity.oauth.tokens import TokenSet, UsableGrant


class GrantStore(Protocol):
    """The grants of one tenant, for one request."""

    async def redeem_code(self, presented: Presented) -> UsableGrant | None:
        """Redeem an authorization code; a second use revokes the grant."""
        ...

    async def look_up(self, presented: Presented, thumbprint: str | None) -> UsableGrant | None:
        """Return the grant of a valid refresh token."""
        ...

    async def issue(self, usable: UsableGrant) -> TokenSet | None:
        """Issue the next tokens of a grant."""
        ...

    async def find_issued(self, text: str) -> Grant | None:
        """Return the grant of a valid access token."""
        ...

    async def revoke(self, grant: Grant) -> None:
        """Revoke a grant at its client's request."""
        ...

    def begin(self, params: AuthorizationParams) -> str:
        """Return the URL that continues a checked authorization request."""
        ...

    async def register(self, client: OAuthClientInformationFull) -> None:
        """Store a client that registers itself."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """A client's request before the SDK reads it: its original parameters, and the client that they name."""

    client: OAuthClient | None = None
    fields: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    secret: str | None = field(default=None, repr=False)
    is_basic: bool = False
    """True if the client authenticates in the Authorization header."""
    thumbprint: str | None = None
    """Thumbprint of the key that the client proved (DPoP, RFC 9449)."""

    @property
    def binds_grant(self) -> bool:
        """True if refresh tokens are bound to the key, because the client does not authenticate with a secret."""
        return self.thumbprint is not None and (self.client is None or not self.client.is_confidential)


class SdkProvider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """The provider of one request."""

    def __init__(self, store: GrantStore, request: ClientRequest) -> None:
        self._store = store
        self._request = request
        self._usable: UsableGrant | None = None
        self._issued: Grant | None = None

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """Return the client of the request.

        The SDK compares secrets, but only digests are stored. So the client has the presented secret if it is correct,
        and otherwise a random one.
        """
        client, request = self._request.client, self._request
        if client is None or client.id != client_id:
            return None
        method, secret = "none", None
        if client.is_confidential:
            method = "client_secret_basic" if request.is_basic else "client_secret_post"
            is_right = is_secret(client, request.secret)
            secret = request.secret if is_right else secrets.token_urlsafe(32)  # guard: client-authenticated
        return OAuthClientInformationFull(
            client_id=client.id,
            client_secret=secret,
            token_endpoint_auth_method=method,
            redirect_uris=urls_of(request.fields.get("redirect_uri")),
            scope=request.fields.get("scope"),  # scopes that the tenant does not have are removed later
        )

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Store a client that registers itself.

        Raises:
            RegistrationError: the client's metadata is invalid.
        """
        await self._store.register(client_info)

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Return the URL of the consent page for a request.

        Raises:
            AuthorizeError: the request cannot be served.
        """
        return self._store.begin(params)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """Redeem an authorization code; None if it is unknown or was already used.

        The handler rejects the code of another client.
        """
        presented = read_presented(authorization_code)
        usable = None if presented is None else await self._store.redeem_code(presented)
        if usable is None:
            return None
        grant, stored = usable.grant, usable.stored
        if self._request.fields.get("redirect_uri", grant.redirect_uri) != grant.redirect_uri:  # guard: code-redirect
            return None
        self._usable = usable
        return AuthorizationCode(
            code=authorization_code,
            scopes=list(grant.scopes),
            expires_at=stored.code_ends_at.timestamp(),
            client_id=grant.client,
            code_challenge=stored.code_challenge,
            redirect_uri=AnyUrl(grant.redirect_uri),
            redirect_uri_provided_explicitly="redirect_uri" in self._request.fields,
            resource=grant.resource,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        """Issue the first tokens of a grant.

        Raises:
            TokenError: the grant is for another resource, or the person may no longer use it.
        """
        return await self._issue()

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        """Return a valid refresh token; None otherwise. The handler rejects the token of another client."""
        presented = read_presented(refresh_token)
        if presented is None or presented.family is None:
            return None
        usable = await self._store.look_up(presented, self._request.thumbprint)
        if usable is None:
            return None
        self._usable = usable
        scopes, ends_at = list(usable.grant.scopes), int(usable.grant.ends_at.timestamp())
        return RefreshToken(token=refresh_token, client_id=usable.grant.client, scopes=scopes, expires_at=ends_at)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """Issue the next tokens of a grant.

        Raises:
            TokenError: the grant is for another resource, or the person may no longer use it.
        """
        return await self._issue()

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Return an access token that the gateway issued; None for other tokens."""
        self._issued = await self._store.find_issued(token)
        return None if self._issued is None else AccessToken(token=token, client_id=self._issued.client, scopes=[])

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """Revoke the grant of the token that was loaded."""
        grant = self._issued or (None if self._usable is None else self._usable.grant)
        if grant is not None:
            await self._store.revoke(grant)

    async def _issue(self) -> OAuthToken:
        usable = self._usable
        if usable is None:
            raise TokenError("invalid_grant", "there is no such grant")
        resource = self._request.fields.get("resource", usable.grant.resource)
        if canonical(resource) != usable.grant.resource:  # guard: token-resource
            raise TokenError("invalid_target", "the grant is for another resource")
        try:
            request = self._request
            bound = replace(usable, thumbprint=request.thumbprint, binds_grant=request.binds_grant)
            issued = await self._store.issue(bound)
        except SignInRefused as refused:
            raise TokenError("invalid_grant", refused.message) from None
        if issued is None:
            raise TokenError("invalid_grant", "the refresh token was replaced")
        return OAuthToken(
            access_token=issued.access_token,
            expires_in=issued.life_s,
            refresh_token=issued.refresh_token,
            scope=" ".join(issued.scopes) or None,
        )


def urls_of(redirect_uri: str | None) -> list[AnyUrl] | None:
    """Return the redirect URI of a request as the SDK stores it; None if it is missing or not a URL.

    Registered URIs have valid characters, but can have a host that cannot be decoded (`xn--`).
    """
    try:
        return None if redirect_uri is None else [AnyUrl(redirect_uri)]
    except ValidationError:
        return None
