"""Authorization requests (RFC 6749 section 4.1.1, RFC 8707): validated once, then stored encrypted in the browser.

The gateway stores nothing until the person has signed in and consented.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from gateway.catalog.identity.consents import Permission
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.grants import OAuthClient
from gateway.domain.tenancy.issuers import TenantIssuers
from gateway.domain.tenancy.redirect_uris import host_of
from gateway.identity.oauth.limits import REQUEST_S

REQUEST_PURPOSE = "authorization requests"
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
"""A code challenge of the method S256 (RFC 7636 section 4.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """A request whose client, redirect URI and resource are valid."""

    tenant: TenantId
    client: str
    redirect_uri: str
    state: str | None
    code_challenge: str
    resource: str
    profile: str
    scopes: tuple[str, ...]

    def permission(self, client: OAuthClient) -> Permission:
        """Return the permission that a consent to this request grants."""
        return Permission(
            client=client,
            redirect_uri=self.redirect_uri,
            redirect_host=host_of(self.redirect_uri),
            resource=self.resource,
            profile=self.profile,
            scopes=self.scopes,
            code_challenge=self.code_challenge,
        )


class SealedRequests:
    """Encrypts requests; all `keys` decrypt, and the first one encrypts."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._seal = MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])

    def write(self, request: AuthorizationRequest) -> str:
        """Encrypt a request to a URL-safe string."""
        return self._seal.encrypt(msgspec.msgpack.encode(request)).decode()

    def read(self, tenant: TenantId, text: str) -> AuthorizationRequest | None:
        """Decrypt a request; None if it is invalid, expired, or of another tenant."""
        try:
            found = msgspec.msgpack.decode(self._seal.decrypt(text, REQUEST_S), type=AuthorizationRequest)
        except (InvalidToken, ValueError):
            return None
        return found if found.tenant == tenant else None  # guard: request-tenant


def answer_uri(request: AuthorizationRequest, issuer: str, answer: Mapping[str, str]) -> str:
    """Return the redirect URI with a response: the code or an error, the state, and the issuer (RFC 9207)."""
    state = {} if request.state is None else {"state": request.state}
    added = urlencode({**answer, **state, "iss": issuer})
    return f"{request.redirect_uri}{'&' if '?' in request.redirect_uri else '?'}{added}"


def scopes_of(found: TenantIssuers) -> frozenset[str]:
    """Return the scopes that clients can request: those that rules of the tenant's issuers and access rules name."""
    named = (issuer.named_scopes for issuer in found.issuers if issuer.sign_in is not None)
    return frozenset[str]().union(*named)


def read_scopes(found: TenantIssuers, requested: str | None) -> tuple[str, ...]:
    """Return the requested scopes that the tenant has; others are omitted (RFC 6749 section 3.3)."""
    return tuple(sorted(set((requested or "").split()) & scopes_of(found)))


def canonical(text: str) -> str:
    """Return a resource identifier with scheme and host in lower case, and without a trailing slash."""
    scheme, mark, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme.lower()}{mark}{authority.lower()}{slash}{path}".rstrip("/")
