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
    """What the upstream said: status, content type as sent, the body inflated and whole."""

    status: int
    content_type: str
    body: bytes = field(repr=False)
    retry_after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A stored secret for one security scheme; a user name only where the scheme has one."""

    value: str = field(repr=False)
    username: str | None = field(default=None, repr=False)
