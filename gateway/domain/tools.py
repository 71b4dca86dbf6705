"""A tool as a tenant has it, wherever it comes from."""

from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.identifiers import OperationId, SourceId
from gateway.domain.policy import Safety


class Origin(StrEnum):
    """Where a tool comes from."""

    SOURCE = "source"
    CUSTOM = "custom"
    CODE = "code"
    BUILTIN = "builtin"
    LIVE = "live"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One effective tool: its definition as listed (JSON bytes of the protocol's Tool) and what stands behind it."""

    name: str
    definition: bytes
    safety: Safety
    safety_reasons: tuple[str, ...]
    origin: Origin
    operation: OperationId
    source: SourceId
    source_name: str
    identity: str
    plan: bytes
