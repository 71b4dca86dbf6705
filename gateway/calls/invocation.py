"""The state of one call in the pipeline; handlers use it as `handlers.interfaces.Call`."""

import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from gateway.calls import result_rendering
from gateway.calls.budget import CallBudget
from gateway.calls.call_peer import CallPeer
from gateway.domain.audit import AuditKind, CallRecord
from gateway.domain.fairness.large_work import run_large
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.queries import Queried
from gateway.domain.results import Contents
from gateway.domain.tenancy.policy import Judgement, Levels, Limits
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tools import Tool
from gateway.errors import GatewayError, NotFound
from gateway.handlers.binding import BoundResource, BoundTool
from gateway.handlers.interfaces import Peer
from gateway.telemetry.log_context import describe_sender

_OPERATION = "operation"


class Admission(Protocol):
    """The slot of one call among the concurrent calls of its tenant."""

    async def __aenter__(self) -> None:
        """Take the slot, or raise LimitExceeded."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        """Free the slot."""
        ...

    def released(self) -> AbstractAsyncContextManager[None]:
        """Free the slot while the block runs, then take one again; raises LimitExceeded if none is free then."""
        ...


class Limiter(Protocol):
    """The limiter of a tenant's calls."""

    def admit(self, tenant: TenantId, key: KeyId, limits: Limits) -> Admission:
        """Hold one of the tenant's call slots while the block runs, or raise LimitExceeded."""
        ...

    def admit_inner(self, tenant: TenantId, key: KeyId, limits: Limits) -> AbstractAsyncContextManager[None]:
        """Count a call inside another one, which shares the outer call's slot, or raise LimitExceeded."""
        ...


class PrimitiveLookup(Protocol):
    """Lookup of other primitives for a running call, limited to the primitives that its principal may use."""

    @property
    def profile(self) -> str:
        """The profile whose primitives are looked up."""
        ...

    @property
    def revision(self) -> int:
        """The catalog revision of the primitives."""
        ...

    @property
    def policy_version(self) -> int:
        """The version of the tenant's policy in that revision."""
        ...

    @property
    def summary_threshold(self) -> int:
        """Size in bytes above which the profile summarises parts of a result; 0 disables summaries."""
        ...

    @property
    def result_scope(self) -> str:
        """The profile and the access rules under which the principal stores and reads results."""
        ...

    @property
    def selects_fields(self) -> bool:
        """True if the profile gives imported tools the argument `_fields`."""
        ...

    async def tool(self, name: str) -> BoundTool | None:
        """Return the tool that clients call by this name; None if there is none."""
        ...

    async def inner_tool(self, name: str) -> BoundTool | None:
        """Return the tool of this name, even if it is hidden from clients; None if there is none."""
        ...

    async def resource(self, uri: str) -> BoundResource | None:
        """Return the resource at this URI; None if there is none."""
        ...

    def queried(self) -> Sequence[Queried]:
        """The sources and operations that the query tools may show."""
        ...

    async def operation(self, tool: Tool) -> BoundTool:
        """Return one of the operations in `queried`, ready to be called."""
        ...


class InnerCalls(Protocol):
    """The operations of the pipeline for calls inside calls."""

    def call_tool(
        self, call: "Invocation", bound: BoundTool, arguments: Mapping[str, object]
    ) -> Coroutine[Any, Any, bytes]:
        """Call a tool."""
        ...

    def read_resource(self, call: "Invocation", bound: BoundResource) -> Coroutine[Any, Any, Contents]:
        """Read a resource."""
        ...


class Invocation:
    """One call, which handlers use as `handlers.interfaces.Call`.

    `is_renewed` is True for a call that got newer primitives while it waited for an approval.
    The pipeline sets `outcome`, `status` and `size` for the audit trail. `outcome` applies to a call that raises no
    error, because `failure` became its result; `status` is the upstream's status, and `size` the result's size in
    bytes. `judged` is the decision of the policy, set only for a call that needs a person.
    """

    __slots__ = (
        "_client",
        "_inner_calls",
        "_inside",
        "_release_body",
        "action",
        "correlation_id",
        "digest",
        "failure",
        "fields",
        "is_renewed",
        "judged",
        "levels",
        "lookup",
        "outcome",
        "peer",
        "principal",
        "reaches_client",
        "recorded",
        "size",
        "slot",
        "source",
        "started_ns",
        "status",
        "upstream_ns",
    )

    def __init__(  # runs for every call, so objects that few calls need are created later
        self,
        inner_calls: InnerCalls,
        principal: Principal,
        peer: Peer,
        lookup: PrimitiveLookup | None,
        *,
        correlation_id: str,
        action: tuple[str, str],
    ) -> None:
        self._inner_calls = inner_calls
        self.lookup = lookup
        self._client = peer
        self._inside: _Nesting | None = None
        self._release_body: Callable[[], None] | None = None
        self.principal = principal
        self.peer = peer
        self.correlation_id = correlation_id
        self.action = action
        self.digest = b""
        self.fields: tuple[str, ...] = ()
        self.levels: Levels | None = None
        self.source = ""
        self.reaches_client = True
        self.is_renewed = False
        self.recorded: dict[str, object] | None = None
        self.judged: Judgement | None = None
        self.failure: GatewayError | None = None
        self.slot: Admission | None = None
        self.outcome = "ok"
        self.status: int | None = None
        self.size = 0
        self.upstream_ns = 0
        self.started_ns = time.perf_counter_ns()

    def hold_body(self, release: Callable[[], None]) -> None:
        """Keep the room of a large body until the call has a result; see `BodyHolder`."""
        self._release_body = release

    def release_body(self) -> None:
        """Release the room of the last body; see `BodyHolder`."""
        release, self._release_body = self._release_body, None
        if release is not None:
            release()

    def within(self, seconds: float) -> AbstractContextManager[None, None]:
        """Bound the time of a block; see `Call`."""
        return self._nesting_state().budget.within(seconds)

    @asynccontextmanager
    async def waiting(self) -> AsyncGenerator[None]:
        """Release the call's slot and pause its time limits while the block waits for a person.

        Raises:
            LimitExceeded: no slot is free afterwards.
        """
        pause = nullcontext() if self._inside is None else self._inside.budget.paused()
        with pause:
            if self.slot is None:
                yield
                return
            async with self.slot.released():
                yield

    async def call_tool(self, name: str, arguments: Mapping[str, object], *, key: str | None = None) -> dict[str, Any]:
        """Call another tool of the same registry through the complete pipeline; see `Call`."""
        inside = self._nesting_state()
        inside.budget.enter(inside.depth)
        bound = None if self.lookup is None else await self.lookup.inner_tool(name)
        if bound is None:
            raise NotFound(f"there is no tool {name[:128]!r}")
        inner = self._inner(inside, key, ("call", bound.tool.name))
        members = await self._inner_calls.call_tool(inner, bound, arguments)
        return await run_large(self.principal.tenant, len(members), result_rendering.decode, members)

    def queried(self) -> Sequence[Queried]:
        """The sources and operations that the query tools may show to this principal; see `Call`."""
        return () if self.lookup is None else self.lookup.queried()

    async def call_operation(self, tool: Tool, arguments: Mapping[str, object]) -> bytes:
        """Call an operation through the complete pipeline; see `Call`."""
        inside = self._nesting_state()
        inside.budget.enter(inside.depth)
        if self.lookup is None:
            raise NotFound(f"there is no tool {tool.name!r}")
        bound = await self.lookup.operation(tool)
        inner = self._inner(inside, _OPERATION, ("call", tool.name))
        inner.reaches_client = self.reaches_client
        return await self._inner_calls.call_tool(inner, bound, arguments)

    async def read_resource(self, uri: str) -> Contents:
        """Read a resource of the same registry through the complete pipeline; see `Call`."""
        inside = self._nesting_state()
        inside.budget.enter(inside.depth)
        bound = None if self.lookup is None else await self.lookup.resource(uri)
        if bound is None:
            raise NotFound(f"there is no resource {uri[:256]!r}")
        return await self._inner_calls.read_resource(self._inner(inside, None, ("read", uri)), bound)

    @property
    def is_inner(self) -> bool:
        """True if this call is inside another call and shares its slot."""
        return self._inside is not None and self._inside.depth > 0

    @property
    def summary_threshold(self) -> int:
        """Size in bytes above which parts of the result are summarised; 0 for a call whose result a handler reads."""
        if self.lookup is None or not self.reaches_client:  # guard: summary-for-clients
            return 0
        return self.lookup.summary_threshold

    @property
    def result_owner(self) -> str:
        """The owner of the results that the call stores and reads; see `Call`."""
        scope = "" if self.lookup is None else self.lookup.result_scope
        return f"{scope} {self.principal.subject}"

    def describe_catalog(self) -> dict[str, object]:
        """The revisions of the catalog and of the policy that the call sees, for the detail of an audit entry."""
        lookup = self.lookup
        if lookup is None:
            return {}
        return {"catalog_revision": lookup.revision, "policy_revision": lookup.policy_version}

    def record(self, kind: AuditKind, outcome: str, more: Mapping[str, object] | None = None) -> CallRecord:
        """Build the audit record of one step of the call; only the first record contains the recorded arguments."""
        recorded, self.recorded = self.recorded, None
        detail: dict[str, object] = {} if recorded is None else recorded
        if self.lookup is not None:
            detail["profile"] = self.lookup.profile
        if self.source:
            detail["source"] = self.source
        describe_sender(detail)
        if more is not None:
            detail.update(more)
        return CallRecord(
            tenant=self.principal.tenant,
            kind=kind,
            principal=self.principal.name,
            subject=self.principal.subject,
            tool=self.action[1],
            outcome=outcome,
            correlation_id=self.correlation_id,
            digest=self.digest,
            status=self.status,
            duration_us=(time.perf_counter_ns() - self.started_ns) // 1000,
            result_bytes=self.size,
            action=self.action[0],
            levels=self.levels,
            detail=detail,
        )

    def _nesting_state(self) -> "_Nesting":
        """Return the state for time limits and inner calls, made on first use because few calls need it."""
        if self._inside is None:
            self._inside = _Nesting(CallBudget(), "", 0)
            self.peer = CallPeer(self._client, self._inside.budget)
        return self._inside

    def _inner(self, inside: "_Nesting", key: str | None, action: tuple[str, str]) -> "Invocation":
        inside.calls += 1
        inner = Invocation(
            self._inner_calls,
            self.principal,
            self._client,
            self.lookup,
            correlation_id=self.correlation_id,
            action=action,
        )
        prefix = f"{inside.prefix}{key or f'call/{inside.calls}'}/"
        inner.slot = self.slot
        inner.reaches_client = False
        inner._inside = _Nesting(inside.budget, prefix, inside.depth + 1)
        inner.peer = CallPeer(self._client, inside.budget, prefix=prefix)
        return inner


@dataclass(slots=True)
class _Nesting:
    """The position of a call among nested calls: the budget that they share, its key prefix, its depth."""

    budget: CallBudget
    prefix: str
    depth: int
    calls: int = 0
