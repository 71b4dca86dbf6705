"""Where primitives are imported from, and the report of what became of each operation."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.domain.identifiers import OperationId, SourceId, TenantId
from gateway.domain.plans import RequestPlan
from gateway.domain.policy import Safety


class Status(StrEnum):
    """What became of one operation of a document."""

    OK = "ok"
    DEGRADED = "degraded"
    SKIPPED = "skipped"


class Exposure(StrEnum):
    """Whether a source shows its operations as tools, through the query tools, or both."""

    TOOLS = "tools"
    QUERY = "query"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationReport:
    """What became of one operation; `tool` is None exactly when it was skipped."""

    method: str
    path: str
    operation_id: str | None
    tool: str | None
    status: Status
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What became of every operation of a document, and what the result costs a client to list."""

    operations: tuple[OperationReport, ...]
    warnings: tuple[str, ...]
    tools_list_bytes: int

    def count(self, status: Status) -> int:
        """How many operations ended in this status."""
        return sum(operation.status is status for operation in self.operations)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledOperation:
    """One operation as a tool: its definition as listed (JSON bytes) and its request plan.

    `identity` is `METHOD path-template`; it survives re-imports and finds the tool name again.
    """

    identity: str
    method: str
    path: str
    operation_id: str | None
    tool: str
    definition: bytes
    plan: RequestPlan
    safety: Safety
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """Everything an import takes from a document."""

    title: str
    version: str
    operations: tuple[CompiledOperation, ...]
    report: ImportReport
    scheme_names: tuple[str, ...] = ()
    """Security schemes the document declares, for credentials to be stored under."""
    outline: bytes = b""
    """What the query tools know of the document, as it is stored; empty when they were not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One document of a tenant, and the version of it that is active."""

    tenant: TenantId
    id: SourceId
    name: str
    title: str
    base_url: str | None
    prefix: str | None
    expose: Exposure
    url: str | None
    schemes: tuple[str, ...]
    """Names of the security schemes that have a stored credential; never the credentials."""
    active_version: int
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOperation:
    """One operation as the catalog keeps it; `plan` is the encoded request plan, decoded on first use."""

    id: OperationId
    source: SourceId
    identity: str
    operation_id: str | None
    tool: str
    definition: bytes
    plan: bytes
    safety: Safety
    tags: tuple[str, ...] = ()
