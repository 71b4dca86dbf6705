"""Named selections of a tenant's primitives."""

from dataclasses import dataclass

from gateway.domain.identifiers import ProfileId
from gateway.domain.tenancy.policy import Safety

DEFAULT_PROFILE = "default"
MIN_SUMMARY_THRESHOLD, MAX_SUMMARY_THRESHOLD = 4096, 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Conditions on a primitive. All set members must match; a rule without any matches everything.

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
    """A selection of primitives: each matches an include rule (unless there is none) and no exclude rule."""

    id: ProfileId
    name: str
    description: str = ""
    include: tuple[Rule, ...] = ()
    exclude: tuple[Rule, ...] = ()
    structured_once: bool = False
    """True if JSON results are structured content alone, with a sentence as text."""
    selects_fields: bool = False
    """True if imported tools take `_fields`."""
    summary_threshold: int = 0
    """Bytes above which parts of results are summarised; 0: never."""
    version: int = 1
