"""Client of the token, revocation and introspection endpoints of OAuth servers.

Token requests follow RFC 6749 (sections 2.3.1, 4.1.3, 4.4.2, 5, 6) and RFC 8693, revocation RFC 7009, and introspection
RFC 7662.
"""

import base64
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode

import msgspec

from gateway.domain.credentials import TokenExchange
from gateway.domain.http.plans import SchemePlan
from gateway.domain.http.requests import AccessToken, Credential, UpstreamRequest, UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.json_text import decode_object
from gateway.errors import TokenRefused
from gateway.upstream.auth.credentials import digest_of
from gateway.upstream.auth.limits import DEFAULT_TOKEN_LIFE_S, MAX_TOKEN_BODY_BYTES, MAX_TOKEN_LIFE_S
from gateway.upstream.client import UpstreamClient
from gateway.upstream.serialize.header_checks import is_header_value

_SUBJECT_KIND = "urn:ietf:params:oauth:token-type:access_token"  # a name, not a secret
_FORM = "application/x-www-form-urlencoded"
_OK = 200
_REFUSED_STATUSES = frozenset((400, 401))
_CLIENT_ERRORS = frozenset((None, "invalid_client", "invalid_request"))
"""Error codes after which the client credentials are sent in the body; None because many servers send no code."""

_REGISTERED_ERRORS = frozenset(
    {
        "access_denied",
        "invalid_client",
        "invalid_grant",
        "invalid_request",
        "invalid_scope",
        "invalid_target",
        "server_error",
        "slow_down",
        "temporarily_unavailable",
        "unauthorized_client",
        "unsupported_grant_type",
    }
)
"""Registered error codes, which messages may contain.

Other codes are omitted, because an endpoint may return the secret in the error code.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """A request to a token endpoint, before client authentication is added; `label` identifies it in messages."""

    label: str
    url: str
    client: Credential
    """Id and secret of the client."""
    fields: tuple[tuple[str, str], ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenResponse:
    """A successful token response; `scopes` are the scopes that the server returned, if any."""

    access_token: AccessToken
    refresh_token: str | None = field(default=None, repr=False)
    id_token: str | None = field(default=None, repr=False)
    scopes: frozenset[str] | None = None
    declares_life: bool = True
    """False if the server declared no lifetime; the access token then has the default lifetime."""


def client_credentials(scheme: SchemePlan, client: Credential) -> TokenRequest:
    """Return the client credentials request with the scheme's scopes and the client's further parameters."""
    scope = (("scope", " ".join(scheme.scopes)),) if scheme.scopes else ()
    fields = (("grant_type", "client_credentials"), *scope, *client.parameters)
    return TokenRequest(label=scheme.name, url=scheme.token_url or "", client=client, fields=fields)


def token_exchange(terms: TokenExchange, name: str, client: Credential, subject_token: str) -> TokenRequest:
    """Return the token exchange request for the same subject at the upstream (RFC 8693 section 2.1)."""
    fields = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("subject_token", subject_token),
        ("subject_token_type", _SUBJECT_KIND),
        ("requested_token_type", _SUBJECT_KIND),
    ]
    if terms.audience is not None:
        fields.append(("audience", terms.audience))
    if terms.scopes:
        fields.append(("scope", " ".join(terms.scopes)))
    return TokenRequest(label=name, url=terms.token_url, client=client, fields=tuple(fields))


def code_exchange(label: str, url: str, client: Credential, fields: Mapping[str, str]) -> TokenRequest:
    """Return the authorization code request; `fields` are `code`, `redirect_uri` and `code_verifier`."""
    pairs = (("grant_type", "authorization_code"), *fields.items())
    return TokenRequest(label=label, url=url, client=client, fields=pairs)


def token_refresh(label: str, url: str, client: Credential, refresh_token: str) -> TokenRequest:
    """Return the refresh token request."""
    pairs = (("grant_type", "refresh_token"), ("refresh_token", refresh_token))
    return TokenRequest(label=label, url=url, client=client, fields=pairs)


def token_revocation(label: str, url: str, client: Credential, token: str) -> TokenRequest:
    """Return the revocation request of a token (RFC 7009 section 2.1)."""
    return TokenRequest(label=label, url=url, client=client, fields=(("token", token),))


async def revoke_token(upstream: UpstreamClient, tenant: TenantId, wanted: TokenRequest) -> bool:
    """Send a revocation request; return True if the server confirmed it.

    Raises:
        TokenRefused: the credential cannot be sent.
        UpstreamError: the request to the endpoint failed.
    """
    response = await upstream.send(_request(wanted), tenant=tenant, limit_bytes=MAX_TOKEN_BODY_BYTES)
    return response.status == _OK


def token_introspection(label: str, url: str, client: Credential, token: str) -> TokenRequest:
    """Return the introspection request of an access token (RFC 7662 section 2.1)."""
    pairs = (("token", token), ("token_type_hint", "access_token"))
    return TokenRequest(label=label, url=url, client=client, fields=pairs)


async def introspect_token(
    upstream: UpstreamClient, tenant: TenantId, wanted: TokenRequest, *, in_body: bool
) -> Mapping[str, Any] | None:
    """Return the response members of an active token; None if the token is inactive.

    With `in_body`, the client credentials are sent in the body.

    Raises:
        TokenRefused: the response is not an introspection response, or the credential cannot be sent.
        UpstreamError: the request to the endpoint failed.
    """
    response = await upstream.send(_request(wanted, in_body=in_body), tenant=tenant, limit_bytes=MAX_TOKEN_BODY_BYTES)
    members = _members(response)
    if response.status != _OK or not isinstance(members.get("active"), bool):  # guard: introspection-state
        error = _error(response)
        why = f" ({error})" if error in _REGISTERED_ERRORS else ""
        raise TokenRefused(
            f"The introspection endpoint of {wanted.label!r} responded with status {response.status}{why} and no state"
            " of the token."
        )
    return members if members["active"] else None


async def fetch_token(upstream: UpstreamClient, tenant: TenantId, wanted: TokenRequest) -> AccessToken:
    """Fetch a new access token; raises like `fetch_tokens`."""
    return (await fetch_tokens(upstream, tenant, wanted)).access_token


async def fetch_tokens(upstream: UpstreamClient, tenant: TenantId, wanted: TokenRequest) -> TokenResponse:
    """Fetch new tokens.

    The client authenticates in the Authorization header, which every server must support. Some servers require the
    credentials in the body. So after status 400 or 401 with `invalid_client`, `invalid_request` or no error code, the
    request is repeated with the credentials in the body.

    Raises:
        TokenRefused: the endpoint issued no token.
        UpstreamError: the request to the endpoint failed.
    """
    response = await upstream.send(_request(wanted), tenant=tenant, limit_bytes=MAX_TOKEN_BODY_BYTES)
    if response.status in _REFUSED_STATUSES and _error(response) in _CLIENT_ERRORS:
        response = await upstream.send(_request(wanted, in_body=True), tenant=tenant, limit_bytes=MAX_TOKEN_BODY_BYTES)
    return _read(wanted, response)


def _request(wanted: TokenRequest, *, in_body: bool = False) -> UpstreamRequest:
    name, secret = wanted.client.username or "", wanted.client.value
    fields = dict(wanted.fields)
    headers: tuple[tuple[str, str], ...] = (("Accept", "application/json"), ("Content-Type", _FORM))
    if in_body:
        fields |= {"client_id": name, "client_secret": secret}
    else:
        pair = base64.b64encode(f"{_form(name)}:{_form(secret)}".encode()).decode()
        headers = (*headers, ("Authorization", f"Basic {pair}"))
    try:
        body = urlencode(fields).encode("ascii")
    except UnicodeEncodeError:
        raise TokenRefused(f"The credential stored for {wanted.label!r} cannot be sent; store it again.") from None
    return UpstreamRequest(
        method="POST", url=wanted.url, headers=headers, body=body, credential=digest_of((name, secret))
    )


def _form(text: str) -> str:
    return quote_plus(text.encode("utf-8", "replace"), safe="")


def _read(wanted: TokenRequest, response: UpstreamResponse) -> TokenResponse:
    members = _members(response)
    if response.status != _OK:
        found = _error(response)
        error = found if found in _REGISTERED_ERRORS else None  # guard: token-endpoint-errors
        why = f" ({error})" if error is not None else ""
        refused = TokenRefused(f"The token endpoint of {wanted.label!r} responded with status {response.status}{why}.")
        refused.error = error
        raise refused
    value, kind = members.get("access_token"), members.get("token_type", "bearer")
    if not isinstance(value, str) or not value or not is_header_value(value):
        raise TokenRefused(f"The token endpoint of {wanted.label!r} returned no token.")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise TokenRefused(f"The token endpoint of {wanted.label!r} returned a token that is not a bearer token.")
    life_s = _life(members.get("expires_in"))
    scope = _text(members, "scope")
    return TokenResponse(
        access_token=AccessToken(value=value, expires_at=time.time() + life_s, life_s=life_s),
        refresh_token=_text(members, "refresh_token"),
        id_token=_text(members, "id_token"),
        scopes=None if scope is None else frozenset(scope.replace(",", " ").split()),
        declares_life="expires_in" in members,
    )


def _text(members: Mapping[str, Any], name: str) -> str | None:
    value = members.get(name)
    return value if isinstance(value, str) and value else None


def _error(response: UpstreamResponse) -> str | None:
    error = _members(response).get("error")
    return error if isinstance(error, str) else None


def _members(response: UpstreamResponse) -> dict[str, Any]:
    try:
        return decode_object(response.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _life(message: object) -> float:
    """Return the lifetime of the token in seconds, at most a day; five minutes without a valid declaration."""
    try:
        seconds = (
            float(message)
            if isinstance(message, int | float | str) and not isinstance(message, bool)
            else DEFAULT_TOKEN_LIFE_S
        )
    except (ValueError, OverflowError):
        return DEFAULT_TOKEN_LIFE_S
    return min(max(seconds, 0.0), MAX_TOKEN_LIFE_S) if math.isfinite(seconds) else DEFAULT_TOKEN_LIFE_S
