"""A tenant's overrides of imported tools, and aliases for the former names of tools.

Both refer to an operation by its identity, `METHOD path-template`, so they survive a new import of the document.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Annotated

from gateway.domain.identifiers import OverrideId, SourceId
from gateway.domain.members.formats import NAME, PATH, POINTER
from gateway.domain.members.markers import About, Check, Form, Length, Names, Option, Setter, Shape, ShownAs, StoredAs
from gateway.domain.members.values import ShortText, check_printable
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.recorded_fields import Concealed, Omitted
from gateway.domain.tools import Tool

ALIAS_LIFETIME = timedelta(days=30)
"""Time during which a renamed tool can be called by its old name."""
_Path = Annotated[str, Length(most=512), Form(PATH)]
_Paths = Annotated[tuple[_Path, ...], Length(least=1, most=100)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """A tool's annotations for clients. A hint that is null has its value from the imported document."""

    readOnlyHint: Annotated[  # noqa: N815  # names as in the MCP specification
        bool | None, About("True if the tool only reads."), Option(name="read-only")
    ] = None
    destructiveHint: Annotated[  # noqa: N815
        bool | None, About("True if the tool may delete or overwrite data."), Option(name="destructive")
    ] = None
    idempotentHint: Annotated[  # noqa: N815
        bool | None, About("True if repeated calls have no further effect."), Option(name="idempotent")
    ] = None
    openWorldHint: Annotated[  # noqa: N815
        bool | None, About("True if the tool interacts with external systems."), Option(name="open-world")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultParts:
    """The projection of a result: `pointer` selects a part, `keep` lists paths to keep, and `drop` paths to remove."""

    pointer: Annotated[
        str | None,
        Length(most=512),
        Form(POINTER),
        About("The part of the response that is kept, as a JSON Pointer; by default the whole response."),
    ] = None
    keep: Annotated[_Paths | None, About("The paths that are kept, in which `*` matches any part; by default all.")] = (
        None
    )
    drop: Annotated[_Paths | None, About("The paths that are removed, in which `*` matches any part.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """The tenant's changes of an imported tool; null keeps the document's value."""

    id: Annotated[OverrideId, About("The id; it never changes."), Setter.GATEWAY]
    name: Annotated[
        str,
        StoredAs("key"),
        Setter.GATEWAY,
        About(
            "The name of the tool: that of its document, or the one that the override gives. While the document lacks "
            "the operation, the name that the override gives, or else the override's id."
        ),
    ]
    source: Annotated[
        str, Form(NAME), Names("source"), Setter.CREATION, Shape.LISTED, About("The name of the source of the tool.")
    ]
    operation: Annotated[
        str,
        StoredAs("identity"),
        Length(least=1, most=4096),
        Check(check_printable),
        Setter.CREATION,
        Shape.LISTED,
        About("Method and path, which identify the operation in every version of the document."),
    ]
    title: Annotated[
        str | None,
        Length(least=1, most=200),
        Shape.LISTED,
        About("The title that user interfaces show instead of the name."),
    ] = None
    description: Annotated[str | None, Length(least=1, most=16_384), About("The description, for models.")] = None
    hidden: Annotated[
        bool | None,
        Option(older={"hidden": "hide/show"}),
        Shape.LISTED,
        About(
            "True hides the tool from the lists and calls of clients; handlers and `call_endpoint` can still call it."
        ),
    ] = None
    enabled: Annotated[bool | None, Shape.LISTED, About("False: no principal can list or use the tool.")] = None
    safety: Annotated[
        Safety | None, Shape.LISTED, About("The safety level; it replaces the level of the document.")
    ] = None
    annotations: Annotated[Hints | None, Option(name="hint"), About("Hints to clients about the tool's effects.")] = (
        None
    )
    pinned: Annotated[
        Concealed[Mapping[ShortText, object] | None],
        Length(most=200),
        Shape.ONE_VALUE,
        Option(is_special=True),
        About("Arguments with a fixed value, which callers can neither see nor send."),
    ] = None
    result: Annotated[
        ResultParts | None,
        Option(older={"pointer": "pointer", "keep": "keep", "drop": "drop"}),
        About("The projection of JSON responses."),
    ] = None
    version: int = 1
    created_at: Annotated[datetime, About("The time of creation."), Setter.GATEWAY]
    updated_at: Annotated[datetime, About("The time of the last change."), Setter.GATEWAY]
    given_name: Omitted[Annotated[str | None, StoredAs("name")]] = None
    """The name that the override gives; None keeps that of the document."""
    source_id: Omitted[SourceId | None] = None
    """The id of the source; None until the operation of a new override is found."""
    tool: Omitted[str | None] = None
    """The name of the tool; None while the document lacks the operation."""
    document: Omitted[Tool | None] = field(default=None, compare=False)
    """The tool under the document's definition against which a change was checked; None for what is stored."""

    @property
    def is_empty(self) -> bool:
        """True if nothing is overridden."""
        return self.given_name is None and all(getattr(self, name) is None for name in CHANGES)


CHANGES = ("title", "description", "hidden", "enabled", "safety", "annotations", "pinned", "result")
"""The members that replace parts of a tool, beside its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideStatus:
    """State of an override that the gateway computes for each response."""

    tool: Annotated[str | None, About("The name of the tool; null while the document has no such operation.")]


def given_members(one: Hints | ResultParts | None) -> dict[str, object]:
    """The members that are not null."""
    if one is None:
        return {}
    return {each.name: value for each in fields(one) if (value := getattr(one, each.name)) is not None}


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
