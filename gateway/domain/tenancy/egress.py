"""Private upstreams that the operator permits for one tenant."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Egress:
    """A tenant's allow-list: exact `host:port` entries, in addition to the entries that apply to every tenant."""

    allow: tuple[str, ...] = ()
    """Canonical entries, sorted, without duplicates."""
    version: int = 1
