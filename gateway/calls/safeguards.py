"""The components of a call pipeline that need a database or a secret key; a local server has none of them."""

from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias

from gateway.calls.arguments.recorded_arguments import ArgumentRecorder
from gateway.calls.guardrails.chain import Guardrails
from gateway.calls.invocation import Invocation
from gateway.handlers.binding import BoundPrompt, BoundResource, BoundTool
from gateway.handlers.interfaces import Handler, Prepared

BoundCall: TypeAlias = BoundTool | BoundResource | BoundPrompt


class LookupRenewed(Exception):
    """The catalog changed while a call waited; the call is prepared again with `bound`, its tool in the current one."""

    def __init__(self, bound: BoundTool) -> None:
        super().__init__()
        self.bound = bound


class Approvals(Protocol):
    """The approvals of calls."""

    def approved(
        self, call: Invocation, bound: BoundCall, handler: Handler[Any], prepared: Prepared
    ) -> AbstractAsyncContextManager[Prepared]:
        """Return a context manager that yields the prepared call once it is approved, and stores its outcome."""
        ...


class Safeguards(NamedTuple):
    """The safeguards of a pipeline; without `recorder`, no arguments are recorded."""

    approvals: Approvals | None = None
    guardrails: Guardrails | None = None
    recorder: ArgumentRecorder | None = None
