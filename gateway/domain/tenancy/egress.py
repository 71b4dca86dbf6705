"""Private upstreams that the operator permits for one tenant."""

from dataclasses import dataclass
from typing import Annotated

from gateway.domain.members.markers import About, Length, Option

_Entry = Annotated[str, Length(least=1, most=300)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Egress:
    """A tenant's allow-list of private upstreams, in addition to the entries that apply to every tenant."""

    allow: Annotated[
        tuple[_Entry, ...],
        Length(most=100),
        About("Host names or addresses, each with a port, or `unix:/path`; patterns are refused. Sorted when stored."),
        Option(metavar="HOST:PORT"),
    ] = ()
    version: int = 1
