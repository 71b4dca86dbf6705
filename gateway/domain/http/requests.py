"""One HTTP request before it is sent, and its response.

Each upstream call creates both. They are structs, because creating a frozen dataclass takes ten times as long.
"""

from dataclasses import dataclass, field

import msgspec

from gateway.domain.credentials import Delegation
from gateway.domain.tenancy.secret_references import SecretReference


class UpstreamRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request ready to be sent; the URL is absolute and fully encoded.

    `credential` is the digest of the request's secrets (`upstream.auth.credentials.digest_of`). Requests with different
    secrets use different connections. `timeout_s` replaces the usual time limits, up to the operator's maximum.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    idempotent: bool = False
    credential: bytes = b""
    timeout_s: float | None = None

    def __repr__(self) -> str:
        """Omits headers and body, which may be secret."""
        return f"UpstreamRequest(method={self.method!r}, url={self.url!r})"


class UpstreamResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The upstream's response: status, content type as sent, decompressed body."""

    status: int
    content_type: str
    body: bytes
    retry_after: str | None = None
    location: str | None = None
    """Target of a redirect; the upstream client does not follow it."""
    headers: tuple[tuple[str, str], ...] = ()
    """The headers that results show, with lower-case names; not those of a complete response."""
    cut: str | None = None
    """Reason why the body of a stream is incomplete; None if it is complete."""

    def __repr__(self) -> str:
        """Omits the body."""
        return f"UpstreamResponse(status={self.status!r}, content_type={self.content_type!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A stored secret; `username` is set only if the scheme uses one.

    With `reference`, the secret comes from the stored credential of this name.
    """

    value: str = field(repr=False)
    username: str | None = field(default=None, repr=False)
    reference: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    """Further parameters of the token request, if the scheme requests a token with client credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCredential:
    """A tenant's stored secret by name, its position in a request, and the only origins it may be sent to.

    `place` is `header`, `query`, `bearer` or `basic`; `field` is the header or query parameter, if there is one. With
    `delegation`, each request has a credential of its caller in place of the stored one.
    """

    place: str
    credential: Credential
    origins: tuple[str, ...]
    field: str = "Authorization"
    name: str = ""
    id: str = ""
    delegation: Delegation | None = None
    digest: bytes | None = None
    """The digest that selects pooled connections; with None, it is derived from the secret."""
    reference: SecretReference | None = None
    """The reference to the secret in an external store; the secret is empty until it is read from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A token issued by an authorization server, with its expiry (epoch seconds) and its lifetime."""

    value: str = field(repr=False)
    expires_at: float
    life_s: float
