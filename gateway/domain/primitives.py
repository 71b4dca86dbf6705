"""Custom tools, resources, resource templates and prompts of a tenant, as stored in the catalog."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.domain.identifiers import PrimitiveId, TenantId
from gateway.domain.tenancy.policy import Levels, Safety
from gateway.domain.tenancy.recorded_fields import Concealed, JsonText
from gateway.domain.tools import PrimitiveOrigin


class Family(StrEnum):
    """The kinds of primitives in MCP."""

    TOOL = "tool"
    RESOURCE = "resource"
    TEMPLATE = "resource_template"
    PROMPT = "prompt"


TOOL = "tool:"
OPERATION = "operation:"
CREDENTIAL = "credential:"


def refer_to_operation(source: str, key: str) -> str:
    """The reference to an operation of a source; names of sources contain no colon."""
    return f"{OPERATION}{source}:{key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledTool:
    """Another tool of the tenant, by name."""

    pointer: str
    name: str

    @property
    def stored(self) -> Sequence[str]:
        """The references in the form stored with the primitive."""
        return (f"{TOOL}{self.name}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedOperation:
    """An imported operation, and the names of the arguments that the declaration fixes."""

    pointer: str
    source: str
    operation: str
    arguments: tuple[str, ...] = ()

    @property
    def stored(self) -> Sequence[str]:
        """The references in the form stored with the primitive."""
        return (refer_to_operation(self.source, self.operation),)


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginRequest:
    """A request to an origin, with or without a credential."""

    pointer: str
    origin: str
    credential: str | None

    @property
    def stored(self) -> Sequence[str]:
        """The references in the form stored with the primitive."""
        return () if self.credential is None else (f"{CREDENTIAL}{self.credential}",)


Reference = CalledTool | PinnedOperation | OriginRequest
"""A reference of a declared handler, with its place in the declaration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Primitive:
    """One primitive: its definition as listed (JSON bytes) and its handler.

    `name` identifies it in its family: the name of a tool or prompt, the URI of a resource, the URI template of a
    resource template. `handler` is the declared handler as JSON bytes. It is empty for a primitive registered in
    Python code, whose handler is found by family and name.

    `safety` is the level in force: `override` (declared by the tenant) if it is set, else `assessed`, which the gateway
    derives from the handler. `refers` names the dependencies of the handler: `tool:NAME`, `operation:SOURCE:KEY` or
    `credential:NAME`. `source_name` is the live source of a discovered primitive.
    """

    id: PrimitiveId
    family: Family
    name: str
    definition: JsonText[bytes]
    handler: Concealed[bytes] = b""
    safety: Safety = Safety.SAFE
    safety_reasons: tuple[str, ...] = ()
    override: Safety | None = None
    assessed: Safety = Safety.SAFE
    refers: tuple[str, ...] = ()
    origin: PrimitiveOrigin = PrimitiveOrigin.CUSTOM
    enabled: bool = True
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None
    counted: Safety | None = None
    source_name: str = ""

    @property
    def level(self) -> Safety:
        """The level for policy decisions: `safety`, or the higher level of the operation that the handler runs."""
        return self.counted or self.safety

    @property
    def levels(self) -> Levels | None:
        """Declared and assessed level, if they differ."""
        return None if self.override in {None, self.assessed} else (self.safety, self.assessed)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedName:
    """A name in use by a tenant, enabled or not; `owner` is `custom` or `source:NAME`."""

    tenant: TenantId
    slug: str
    family: Family
    name: str
    owner: str
