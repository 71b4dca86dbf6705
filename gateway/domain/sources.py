"""Where primitives are imported from, which operations are taken, and the report of what became of each."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.domain.http.plans import RequestPlan
from gateway.domain.identifiers import OperationId, SourceId, TenantId
from gateway.domain.overrides import OverrideReport
from gateway.domain.tenancy.policy import Safety

_BYTES_PER_TOKEN = 4


def estimate_tokens(size: int) -> int:
    """About how many tokens so many bytes of JSON are to a model; a rule of thumb, no tokenizer."""
    return round(size / _BYTES_PER_TOKEN)


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
class OperationRule:
    """What an operation must be to match; every member that is set narrows, a rule with none matches everything.

    `operation_ids` and `paths` are shell patterns, in which `*` also stands for slashes.
    """

    operation_ids: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


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
class ListedPrice:
    """How many bytes one tool has in a client's list."""

    tool: str
    size: int

    @property
    def estimated_tokens(self) -> int:
        """About how many tokens that is to a model."""
        return estimate_tokens(self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What became of every operation of a document, and what the result costs a client to list.

    `tools_list_bytes` is the length of `{"tools":[…]}` with everything that is listed for this source alone, which are
    `listed` tools (None in reports of an older version); `dearest` are those that weigh most in it, the heaviest first.
    """

    operations: tuple[OperationReport, ...]
    warnings: tuple[str, ...]
    tools_list_bytes: int
    dearest: tuple[ListedPrice, ...] = ()
    overrides: tuple[OverrideReport, ...] = ()
    listed: int | None = None

    @property
    def tools_listed(self) -> int:
        """Number of tools that clients are listed for this source alone."""
        return sum(one.tool is not None for one in self.operations) if self.listed is None else self.listed

    @property
    def estimated_tokens(self) -> int:
        """About how many tokens the list is to a model."""
        return estimate_tokens(self.tools_list_bytes)

    def count(self, status: Status) -> int:
        """How many operations ended in this status."""
        return sum(operation.status is status for operation in self.operations)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationChange:
    """What another import means for one operation; `was` is the name its tool had, where that is another one."""

    identity: str
    tool: str
    was: str | None = None
    recent_calls: int | None = None
    """Calls of a removed tool in the last seven days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportChanges:
    """How the tools of an import differ from those of the version before, by the identity of the operations.

    `changed` are tools of the same name that list, send or are judged otherwise than before.
    """

    added: tuple[OperationChange, ...] = ()
    removed: tuple[OperationChange, ...] = ()
    renamed: tuple[OperationChange, ...] = ()
    changed: tuple[OperationChange, ...] = ()


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
    include: tuple[OperationRule, ...] = ()
    """An operation is taken when one of these matches, or none is given, and none of `exclude` does."""
    exclude: tuple[OperationRule, ...] = ()
    output_schemas: bool = False
    """Whether its tools list what they answer; such an answer is held to it."""


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
