"""The gateway as a client of a tenant's OpenID provider (OpenID Connect Core 1.0 sections 3.1, 5.3 and 12).

Every request uses the guarded client. `gateway.identity.access_tokens` verifies ID tokens. The UserInfo endpoint is
requested whenever there are no groups in the ID token, or a refresh returns no ID token.
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

import msgspec

from gateway.domain.http.requests import Credential, UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.domain.json_text import decode_object
from gateway.domain.refusals import SignInFailed
from gateway.domain.tenancy.issuers import IdentityClaims, Issuer, SignInClient
from gateway.domain.tenancy.sign_ins import ProviderTokens
from gateway.errors import Unavailable, UpstreamError
from gateway.identity.access_tokens import KeySource, TokenRejected, claim_at, read_person, verify_id_token
from gateway.identity.oauth.limits import MAX_USERINFO_BYTES
from gateway.upstream.auth.credentials import digest_of
from gateway.upstream.auth.token_endpoint import TokenResponse, code_exchange, fetch_tokens, token_refresh
from gateway.upstream.client import UpstreamClient

_OK, _SERVER_ERROR = 200, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationTerms:
    """Parameters of one authorization request; the provider returns `state`, and includes `nonce` in the ID token."""

    redirect_uri: str
    state: str
    nonce: str
    verifier: str
    scopes: tuple[str, ...]
    is_forced: bool = False
    """True if the person must sign in again even with an existing session at the provider."""


class ClaimsState(StrEnum):
    """State of the claims after a response of the provider."""

    CURRENT = "current"
    UNDESCRIBED = "undescribed"
    """The provider knows the person, but sent no claims; the groups are not known."""
    UNAVAILABLE = "unavailable"
    """The new claims cannot be read now; the claims are the former ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderIdentity:
    """The identity claims of a person, and the tokens that the provider issued.

    The tokens are stored in each state of the claims, because the provider may have replaced the refresh token.
    """

    claims: IdentityClaims
    tokens: ProviderTokens
    state: ClaimsState = ClaimsState.CURRENT


class RelyingParty:
    """Exchanges codes and refresh tokens at the issuers of all tenants."""

    def __init__(self, upstream: UpstreamClient, keys: KeySource) -> None:
        self._upstream = upstream
        self._keys = keys

    async def exchange_code(
        self, tenant: TenantId, issuer: Issuer, secret: str, terms: AuthorizationTerms, *, code: str
    ) -> ProviderIdentity:
        """Exchange an authorization code, and return the identity of the person.

        Raises:
            TokenRejected: the ID token is not valid for this sign-in.
            SignInFailed, UpstreamError, Unavailable: the provider issued no tokens, or is unavailable.
        """
        fields = {"code": code, "redirect_uri": terms.redirect_uri, "code_verifier": terms.verifier}
        client = client_of(issuer)
        wanted = code_exchange(issuer.name, client.token_url, _credential(client, secret), fields)
        response = await fetch_tokens(self._upstream, tenant, wanted)
        if response.id_token is None:
            raise SignInFailed("The provider sent no ID token; request the scope openid.")
        claims = await verify_id_token(tenant, response.id_token, issuer, self._keys, nonce=terms.nonce)
        scopes = response.scopes or frozenset(terms.scopes)
        merged = await self._complete(tenant, issuer, response, claims)
        return ProviderIdentity(claims=read_person(merged, issuer, scopes), tokens=_tokens(response))

    async def refresh(
        self, tenant: TenantId, issuer: Issuer, secret: str, tokens: ProviderTokens, *, before: IdentityClaims
    ) -> ProviderIdentity:
        """Use the refresh token, and return new tokens with the claims of the same person.

        Raises:
            TokenRefused: the provider no longer knows the person, with the error `invalid_grant`.
            TokenRejected: the ID token is invalid, or it or UserInfo is of another person.
            SignInFailed, UpstreamError, Unavailable: the provider issued no tokens, or is unavailable.
        """
        client = client_of(issuer)
        if tokens.refresh_token is None:
            raise SignInFailed("The provider gave no refresh token.")
        wanted = token_refresh(issuer.name, client.token_url, _credential(client, secret), tokens.refresh_token)
        response = await fetch_tokens(self._upstream, tenant, wanted)
        renewed = _tokens(response, refresh_token=tokens.refresh_token)
        try:
            found = await self._read_again(tenant, issuer, response, before)
        except TokenRejected as rejected:
            if rejected.reason != "key":  # the key of the ID token may be too new for the cached set
                raise
            return ProviderIdentity(claims=before, tokens=renewed, state=ClaimsState.UNAVAILABLE)
        except (UpstreamError, Unavailable):
            return ProviderIdentity(claims=before, tokens=renewed, state=ClaimsState.UNAVAILABLE)
        if found is None:
            # guard: refresh-undescribed
            unknown = replace(before, groups=frozenset(), has_all_groups=False, scopes=response.scopes or before.scopes)
            return ProviderIdentity(claims=unknown, tokens=renewed, state=ClaimsState.UNDESCRIBED)
        if found.subject != before.subject:  # guard: refresh-same-person
            raise TokenRejected("subject", issuer)
        return ProviderIdentity(claims=found, tokens=renewed)

    async def _read_again(
        self, tenant: TenantId, issuer: Issuer, response: TokenResponse, before: IdentityClaims
    ) -> IdentityClaims | None:
        """Return the claims after a refresh: from the ID token, which is optional then, or from the UserInfo endpoint.

        None if neither describes the person. UserInfo without groups means no groups only for a person who had none:
        other providers send groups in the ID token alone.
        """
        scopes = response.scopes or before.scopes
        if response.id_token is not None:
            claims = await verify_id_token(tenant, response.id_token, issuer, self._keys, nonce=None)
            return read_person(await self._complete(tenant, issuer, response, claims), issuer, scopes)
        found = await self._read_userinfo(tenant, issuer, response)
        if "sub" not in found or claim_at(found, issuer.subject_claim) is None:
            return None
        person = read_person(found, issuer, scopes)
        if claim_at(found, issuer.groups_claim) is None and (before.groups or not before.has_all_groups):
            return replace(person, has_all_groups=False)  # guard: refresh-groups-unknown
        return person

    async def _complete(
        self, tenant: TenantId, issuer: Issuer, response: TokenResponse, claims: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the claims; if the ID token lacks groups, merge the claims of the UserInfo endpoint.

        If the endpoint is unavailable and only access rules need groups, the groups are marked as incomplete.
        """
        needs_groups = any(rule.group is not None for rule in issuer.rules)
        if client_of(issuer).userinfo_url is None or claim_at(claims, issuer.groups_claim) is not None:
            return claims
        found: Mapping[str, Any] = {}
        try:
            found = await self._read_userinfo(tenant, issuer, response)
        except UpstreamError:
            if needs_groups:
                raise
        if found.get("sub") != claims["sub"]:  # guard: userinfo-same-person
            if not needs_groups:
                return {**claims, "hasgroups": True}  # guard: userinfo-groups-unknown
            raise SignInFailed("The provider's UserInfo endpoint did not describe the person of the ID token.")
        return {**found, **claims}

    async def _read_userinfo(self, tenant: TenantId, issuer: Issuer, response: TokenResponse) -> Mapping[str, Any]:
        """Return the claims of the UserInfo endpoint; none without an endpoint, or if it sends no JSON object.

        Raises:
            UpstreamError: the endpoint is unavailable.
        """
        url, token = client_of(issuer).userinfo_url, response.access_token.value
        if url is None:
            return {}
        headers = (("Accept", "application/json"), ("Authorization", f"Bearer {token}"))
        request = UpstreamRequest(
            method="GET", url=url, headers=headers, idempotent=True, credential=digest_of((token,))
        )
        answer = await self._upstream.send(request, tenant=tenant, limit_bytes=MAX_USERINFO_BYTES)
        if answer.status >= _SERVER_ERROR:
            raise SignInFailed(f"The provider's UserInfo endpoint responded with status {answer.status}.")
        try:
            return decode_object(answer.body) if answer.status == _OK else {}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return {}


def authorization_url(issuer: Issuer, terms: AuthorizationTerms) -> str:
    """Return the URL of an authorization request with PKCE (RFC 7636)."""
    client = client_of(issuer)
    parameters = {
        **dict(client.parameters),
        **({"prompt": "login"} if terms.is_forced else {}),
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": terms.redirect_uri,
        "scope": " ".join(terms.scopes),
        "state": terms.state,
        "nonce": terms.nonce,
        "code_challenge": challenge_of(terms.verifier),
        "code_challenge_method": "S256",
    }
    separator = "&" if "?" in client.authorization_url else "?"
    return f"{client.authorization_url}{separator}{urlencode(parameters)}"


def challenge_of(verifier: str) -> str:
    """Return the code challenge of a code verifier by the method S256 (RFC 7636 section 4.2)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def client_of(issuer: Issuer) -> SignInClient:
    """Return the gateway's client at an issuer.

    Raises:
        SignInFailed: the issuer has no client any more.
    """
    if issuer.sign_in is None or not issuer.sign_in.token_url:
        raise SignInFailed("The issuer is not one at which the gateway signs people in.")
    return issuer.sign_in


def _credential(client: SignInClient, secret: str) -> Credential:
    return Credential(username=client.client_id, value=secret)


def _tokens(response: TokenResponse, *, refresh_token: str | None = None) -> ProviderTokens:
    """Return the tokens of a response; without a new refresh token, the old one is kept."""
    return ProviderTokens(
        access_token=response.access_token.value,
        access_ends_at=response.access_token.expires_at,
        refresh_token=response.refresh_token or refresh_token,
    )
