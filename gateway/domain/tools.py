"""A tool as a tenant has it, wherever it comes from."""

from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.identifiers import OperationId, PrimitiveId, SourceId
from gateway.domain.tenancy.policy import Levels, Safety

_NO_OPERATION, _NO_SOURCE, _NO_PRIMITIVE = OperationId(""), SourceId(""), PrimitiveId("")


class PrimitiveOrigin(StrEnum):
    """Where a tool comes from."""

    SOURCE = "source"
    CUSTOM = "custom"
    CODE = "code"
    BUILTIN = "builtin"
    LIVE = "live"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One effective tool: its definition as listed (JSON bytes of the protocol's Tool) and what stands behind it.

    An imported operation has `operation`, `source`, `identity` and `plan`; a tenant's own tool has `primitive` and
    `handler` (the declared handler as JSON bytes); a tool of code has neither, its handler is found by its name.
    """

    name: str
    definition: bytes
    safety: Safety
    safety_reasons: tuple[str, ...]
    origin: PrimitiveOrigin
    operation: OperationId = _NO_OPERATION
    source: SourceId = _NO_SOURCE
    source_name: str = ""
    identity: str = ""
    plan: bytes = b""
    primitive: PrimitiveId = _NO_PRIMITIVE
    handler: bytes = b""
    tags: tuple[str, ...] = ()
    """Tags of the operation; profiles select by them."""
    pinned: bytes = b""
    """Arguments that an override fixes, as a JSON object; they are not part of the definition."""
    result: bytes = b""
    """How an override wants JSON answers cut, as a JSON object."""
    counted: Safety | None = None
    """The level that policy counts where that is stricter than `safety`; see `Primitive.level`."""
    levels: Levels | None = None
    """Declared and assessed level of a tenant's own tool, where they differ; each call records them."""

    @property
    def level(self) -> Safety:
        """The level that policy counts."""
        return self.counted or self.safety
