"""What a tenant wants otherwise of an imported tool than its document says, and the names that tools had before.

Both belong to an operation by its identity, `METHOD path-template`, and so outlive every import of the document.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gateway.domain.identifiers import OverrideId, SourceId
from gateway.domain.tenancy.policy import Safety

ALIAS_LIFE = timedelta(days=30)
"""How long a tool that was renamed can be called by its old name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideFields:
    """What is wanted otherwise; a member that is None is as the document says."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    hidden: bool | None = None
    """Not listed, and not to be called by a client itself; handlers and `call_endpoint` still may."""
    enabled: bool | None = None
    """False: nobody can list or call it."""
    safety: Safety | None = None
    annotations: Mapping[str, bool] | None = None
    """Hints that are wanted otherwise; the others are the document's."""
    pinned: Mapping[str, object] | None = None
    """Arguments that always have this value; callers neither see nor send them."""
    result: Mapping[str, object] | None = None
    """How a JSON answer is cut: `pointer`, `keep` and `drop`."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is wanted otherwise."""
        return self == NOTHING


NOTHING = OverrideFields()


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """The wishes for one operation of a source, as they are stored."""

    id: OverrideId
    source: SourceId
    identity: str
    wishes: OverrideFields
    version: int = 1
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A name that an operation's tool had, and until when it can be called by it."""

    name: str
    source: SourceId
    identity: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideReport:
    """What an import makes of one override: whether it applies, and what of it does not."""

    identity: str
    applies: bool
    tool: str | None = None
    reasons: tuple[str, ...] = field(default=())
