"""Private upstreams that the operator lets one tenant reach."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Egress:
    """A tenant's allow-list: exact `host:port` entries beside those that every tenant may reach."""

    allow: tuple[str, ...] = ()
    """Each entry once, in its one spelling, sorted."""
    version: int = 1
