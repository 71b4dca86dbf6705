"""One HTTP request as it will go out, and the answer as it came back."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRequest:
    """A request ready for the wire but for its credentials; the URL is absolute and fully encoded."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = field(default=None, repr=False)
    idempotent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamAnswer:
    """What the upstream said: status, content type as sent, the body inflated."""

    status: int
    content_type: str
    body: bytes = field(repr=False)
    retry_after: str | None = None
    location: str | None = None
    """Where a redirect points; it is never followed."""
    cut: str | None = None
    """What is missing of a stream that went on; None where the body is whole."""


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
