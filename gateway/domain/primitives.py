"""Custom tools, resources, resource templates and prompts of a tenant, as stored in the catalog."""

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
