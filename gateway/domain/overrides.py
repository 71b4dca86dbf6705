"""A tenant's overrides of imported tools, and aliases for the former names of tools.

Both refer to an operation by its identity, `METHOD path-template`, so they survive a new import of the document.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated

from gateway.domain.identifiers import OverrideId, SourceId
from gateway.domain.members.markers import About, ShownAs
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.recorded_fields import Concealed
from gateway.domain.tools import Tool

ALIAS_LIFETIME = timedelta(days=30)
"""Time during which a renamed tool can be called by its old name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideFields:
    """Overridden fields; None keeps the document's value."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    hidden: bool | None = None
    """True: not listed, and clients cannot call it directly; handlers and `call_endpoint` still can."""
    enabled: bool | None = None
    """False: no caller can list or call it."""
    safety: Safety | None = None
    annotations: Mapping[str, bool] | None = None
    """Overridden hints; all other hints come from the document."""
    pinned: Concealed[Mapping[str, object] | None] = None
    """Arguments with a fixed value; callers neither see these arguments nor may send them."""
    result: Mapping[str, object] | None = None
    """Projection of a JSON response: `pointer`, `keep` and `drop`."""

    @property
    def is_empty(self) -> bool:
        """True if no field is overridden."""
        return self == NOTHING


NOTHING = OverrideFields()


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """The stored override of one operation of a source."""

    id: OverrideId
    source: SourceId
    identity: str
    changes: OverrideFields
    version: int = 1
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A former name of an operation's tool; calls by this name work until `expires_at`."""

    name: str
    source: SourceId
    identity: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideReport:
    """The outcome of one override in an import."""

    identity: Annotated[str, ShownAs("operation"), About("The operation: method and path.")]
    applies: Annotated[bool, About("True if the override applies.")]
    tool: Annotated[str | None, About("The tool of the override; null if there is none.")] = None
    reasons: Annotated[tuple[str, ...], About("The reasons that the override, or a part of it, does not apply.")] = (
        field(default=())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedOperation:
    """An operation with its tool as the document defines it, and its override.

    `is_listed` is False if the source is query-only.
    """

    tool: Tool
    operation_id: str | None
    is_listed: bool
    override: Override | None = None
