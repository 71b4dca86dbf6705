"""One HTTP request as it will go out, and the answer as it came back.

Every call makes one of each, so they are structs: made in a tenth of the time of frozen dataclasses.
"""

from dataclasses import dataclass, field

import msgspec


class UpstreamRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request ready for the wire; the URL is absolute and fully encoded.

    `credential` is the digest of the secrets on it (`upstream.auth.credentials.digest_of`): requests with other secrets
    use other connections.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    idempotent: bool = False
    credential: bytes = b""

    def __repr__(self) -> str:
        """Without what may be secret: headers and body."""
        return f"UpstreamRequest(method={self.method!r}, url={self.url!r})"


class UpstreamAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the upstream said: status, content type as sent, the body inflated."""

    status: int
    content_type: str
    body: bytes
    retry_after: str | None = None
    location: str | None = None
    """Where a redirect points; it is never followed."""
    cut: str | None = None
    """What is missing of a stream that went on; None where the body is whole."""

    def __repr__(self) -> str:
        """Without the body."""
        return f"UpstreamAnswer(status={self.status!r}, content_type={self.content_type!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A stored secret for one security scheme; a user name only where the scheme has one."""

    value: str = field(repr=False)
    username: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCredential:
    """A stored secret of a tenant by name, where it goes on a request, and the only origins it may be sent to.

    `place` is `header`, `query`, `bearer` or `basic`; `field` is the header or query parameter where there is one.
    """

    place: str
    credential: Credential
    origins: tuple[str, ...]
    field: str = "Authorization"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A token that an authorization server gave, until when it is good (epoch seconds), and how long that was."""

    value: str = field(repr=False)
    expires_at: float
    life_s: float
