"""Tasks: calls of tools that continue after the response to their request (`io.modelcontextprotocol/tasks`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

import msgspec

from gateway.domain.identifiers import KeyId, TaskId, TenantId


class TaskSupport(StrEnum):
    """Rule of a tool's definition for tasks (`execution.taskSupport`)."""

    FORBIDDEN = "forbidden"
    OPTIONAL = "optional"
    REQUIRED = "required"


class TaskState(StrEnum):
    """State of a task; the last three are final."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN_STATES = (TaskState.WORKING, TaskState.INPUT_REQUIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOwner:
    """The client to which a task belongs: any key of the subject, at the URL of the same profile."""

    tenant: TenantId
    subject: str
    profile: str


class TaskCall(msgspec.Struct, frozen=True, kw_only=True):
    """The call of a task, and the capabilities that its client declared; stored encrypted."""

    arguments: dict[str, Any]
    capabilities: dict[str, Any]


AskedKind = Literal["elicitation", "sampling", "roots"]


class TaskQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """An open request to the client: its kind, and the parameters of the protocol."""

    kind: AskedKind
    params: dict[str, Any]


class TaskRounds(msgspec.Struct, frozen=True, kw_only=True):
    """State of a call between two rounds: responses of the client, kept values and open requests; stored encrypted."""

    answers: dict[str, dict[str, Any]] = {}
    memory: dict[str, Any] = {}
    questions: dict[str, TaskQuestion] = {}


class TaskError(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON-RPC error."""

    code: int
    message: str
    data: dict[str, Any] = {}


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a call: the members of its result as JSON, or an error; stored encrypted."""

    members: bytes | None = None
    error: TaskError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTask:
    """One task. `holder` names the run that has the lease; it is empty while nothing runs."""

    id: TaskId
    owner: TaskOwner
    key: KeyId
    tool: str
    correlation_id: str
    state: TaskState
    message: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    holder: str
    call: TaskCall
    rounds: TaskRounds
    outcome: TaskOutcome | None = None
    approval: Mapping[str, str] | None = None
    """The approval for which the call waits: its id, state, expiry and page."""
