"""Tools, resources, resource templates and prompts as a tenant's admins see them: what they set, and what follows.

A tenant's own primitive is stored. The same form shows a primitive of another origin, which is not stored and has no
handler: of a source, of code, of a live source, or of the gateway.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, ClassVar, TypeVar

import msgspec

from gateway.domain.identifiers import PrimitiveId
from gateway.domain.members.markers import COMPUTED, About, Option, Shape, StoredAs
from gateway.domain.overrides import Override
from gateway.domain.primitives import Family, Primitive, Reference
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.recorded_fields import Concealed, JsonText, Omitted
from gateway.domain.tools import PrimitiveOrigin


class _Described(msgspec.Struct):
    """Name, title and description of a definition."""

    name: str | None = None
    title: str | None = None
    description: str | None = None


_decode = msgspec.json.Decoder(_Described).decode
_Key = Annotated[str, StoredAs("name")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimitiveStatus:
    """State of a primitive that the gateway computes for each response.

    `tag` is the entity tag; it is empty until the state is computed.
    """

    safety: Annotated[Safety, COMPUTED, About("The effective safety level."), Shape.LISTED] = Safety.SAFE
    safety_reasons: Annotated[tuple[str, ...], About("The reasons for this level.")] = ()
    origin: Annotated[
        PrimitiveOrigin, About("The origin: a source, the tenant, code, a live source, or the gateway."), Shape.LISTED
    ] = PrimitiveOrigin.CUSTOM
    source: Annotated[str, About("The name of the source or live source; empty if none."), Shape.LISTED] = ""
    hides_code: Annotated[
        bool, About("True if this item hides a primitive of the same name that is registered in code.")
    ] = False
    tag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDocument:
    """An imported tool as generated from its document."""

    safety: Annotated[Safety, About("The level that the document declares, or that the HTTP method implies.")]
    definition: Annotated[bytes, About("The MCP object that clients see.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStatus(PrimitiveStatus):
    """State of a tool that the gateway computes for each response."""

    operation: Annotated[str, About("The method and path of the tool's operation; empty if none.")] = ""
    hidden: Annotated[bool, About("True: clients do not see the tool; handlers and `call_endpoint` can call it.")] = (
        False
    )
    override: Annotated[Override | None, About("The override; null if there is none.")] = None
    document: Annotated[
        ToolDocument | None, About("The tool as generated from the document; null without an override.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPrimitive:
    """The members that primitives of all families have.

    `assessed`, `safety_reasons` and `refers` are derived from the handler; see `Primitive`. `references` are those of a
    handler that a change has just given.
    """

    family: ClassVar[Family]

    id: PrimitiveId
    definition: Annotated[
        JsonText[bytes],
        About("The MCP object that clients see; `GET /schemas` lists its JSON Schema."),
        Shape.ONE_VALUE,
        Shape.LISTED,
        Option(is_file=True),
    ]
    handler: Annotated[
        Concealed[bytes],
        About("The handler, by `kind`; `GET /schemas` lists the JSON Schema of each kind."),
        Shape.ONE_VALUE,
        Shape.OWN,
        Option(is_file=True),
    ]
    safety: Annotated[
        Safety | None,
        About("The declared safety level, which replaces the level that the gateway assesses; null declares none."),
    ] = None
    enabled: Annotated[bool, About("False: no principal can list or use the primitive."), Shape.LISTED] = True
    assessed: Safety = Safety.SAFE
    safety_reasons: Annotated[tuple[str, ...], StoredAs("reasons")] = ()
    refers: tuple[str, ...] = ()
    references: Omitted[tuple[Reference, ...]] = ()
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTool(OwnPrimitive):
    """A tool."""

    family: ClassVar[Family] = Family.TOOL

    name: str
    status: Omitted[ToolStatus] = field(default=ToolStatus(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnResource(OwnPrimitive):
    """A resource."""

    family: ClassVar[Family] = Family.RESOURCE

    uri: _Key
    status: Omitted[PrimitiveStatus] = field(default=PrimitiveStatus(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTemplate(OwnPrimitive):
    """A resource template."""

    family: ClassVar[Family] = Family.TEMPLATE

    uri_template: _Key
    status: Omitted[PrimitiveStatus] = field(default=PrimitiveStatus(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPrompt(OwnPrimitive):
    """A prompt."""

    family: ClassVar[Family] = Family.PROMPT

    name: str
    status: Omitted[PrimitiveStatus] = field(default=PrimitiveStatus(), compare=False)


Own = TypeVar("Own", bound=OwnPrimitive)
KEYS: Mapping[Family, str] = {
    Family.TOOL: "name",
    Family.RESOURCE: "uri",
    Family.TEMPLATE: "uri_template",
    Family.PROMPT: "name",
}
"""The member that identifies a primitive in its family."""


def key_of(one: OwnPrimitive) -> str:
    """The name, URI or URI template that identifies a primitive in its family."""
    key: str = getattr(one, KEYS[one.family])
    return key


def definition_texts(definition: bytes) -> Iterable[str | None]:
    """Name, title and description in a definition, for searches."""
    found = _decode(definition)
    return (found.name, found.title, found.description)


def to_primitive(one: OwnPrimitive) -> Primitive:
    """A stored primitive in the form of snapshots, without the levels of what it calls."""
    return Primitive(
        id=one.id,
        family=one.family,
        name=key_of(one),
        definition=one.definition,
        handler=one.handler,
        safety=one.safety or one.assessed,
        safety_reasons=one.safety_reasons,
        override=one.safety,
        assessed=one.assessed,
        refers=one.refers,
        enabled=one.enabled,
        version=one.version,
        created_at=one.created_at,
        updated_at=one.updated_at,
    )
