"""Named selections of a tenant's primitives."""

from dataclasses import dataclass

from gateway.domain.identifiers import ProfileId
from gateway.domain.tenancy.policy import Safety

DEFAULT_PROFILE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a primitive must be to match; every member that is set narrows, a rule with none matches everything.

    `names` are shell patterns over the name (of resources: the URI), `methods` HTTP methods of imported operations.
    """

    names: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    safety: tuple[Safety, ...] = ()
    families: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A primitive is in when some include rule matches (or there is none) and no exclude rule does."""

    id: ProfileId
    name: str
    description: str = ""
    include: tuple[Rule, ...] = ()
    exclude: tuple[Rule, ...] = ()
    version: int = 1
