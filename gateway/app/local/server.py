"""Wiring of a local server: the call pipeline over a snapshot in memory, for one client of the same user.

Validation, policy, serialisation, egress guard, redaction and truncation are the same as in a gateway. There is one
tenant and one principal. The stream server enforces limits, and each call is recorded as a log line (decision 36).
"""

import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace

import msgspec
import structlog

from gateway.app.local.documents import LOCAL, LocalSource
from gateway.app.local.limits import CURSOR_KEY_BYTES
from gateway.app.python.registrations import Registrations
from gateway.calls.pipeline import CallPipeline
from gateway.calls.recorded_call import AuditSink
from gateway.catalog.snapshots.composition import Composition, compose
from gateway.catalog.snapshots.python_primitives import primitives_for
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.catalog.snapshots.snapshots import queried_listed
from gateway.catalog.sources.drafts import encode_operations
from gateway.definitions.json_schema.validator_cache import Validators
from gateway.domain.audit import CallRecord
from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.fairness.thread_kinds import SNAPSHOT_LOADS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import KeyId, SourceId, TenantId
from gateway.domain.overrides import LoadedOperation
from gateway.domain.queries import Queried, QueriedKind, QueriedSource
from gateway.domain.sources import Exposure
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import Limits, Policy
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.errors import DecidingRule, NotFound
from gateway.handlers.api_query import Queries
from gateway.handlers.binding import Binder
from gateway.handlers.factory import HandlerDependencies
from gateway.openapi.query.api import DocumentIndex
from gateway.openapi.query.outline import decode_outline
from gateway.openapi.query.remote_tools import outline_tools
from gateway.protocol.stdio.server import StdioServer
from gateway.registry.cursors import Cursors
from gateway.registry.registry import Registry
from gateway.registry.views import SnapshotView, ViewCache
from gateway.upstream.client import UpstreamClient

log = structlog.get_logger(__name__)


def build_local_server(
    sources: Sequence[LocalSource],
    expose: Exposure,
    policy: Policy,
    *,
    upstream: UpstreamClient,
    spawn: Spawn,
) -> StdioServer:
    """Build the server of these documents; `upstream` and the task supervisor of `spawn` are open while it serves."""
    cursors = _cursors()
    queries = Queries(_Outlines(sources), cursors, _InputSchemas(sources))
    binder = Binder(upstream, LocalCredentials(sources), Validators(), HandlerDependencies(queries=queries))
    registry = _registry(ViewCache(binder).of(compose_snapshot(sources, expose, policy)), cursors)
    return StdioServer(CallPipeline(_NoLimiter(), LoggedCalls()), lambda: registry, spawn=spawn)


def build_code_server(
    code: Registrations, policy: Policy, slug: str, audit: AuditSink, *, upstream: UpstreamClient, spawn: Spawn
) -> StdioServer:
    """Build the server of the primitives that a program registered for the tenant with this slug.

    A change of the registrations applies to the client's next request.
    """
    binder = Binder(upstream, LocalCredentials(()), Validators(), HandlerDependencies(code=code))
    views, cursors = ViewCache(binder, code=code), _cursors()
    kept: list[Registry] = []

    def current() -> Registry:
        if not kept or kept[0].view.snapshot.code != code.generation:
            generation = code.generation  # read first, so that a change while composing is composed again
            composed = compose((), (), primitives_for(code, slug))
            kept[:] = [_registry(views.of(_snapshot(composed, policy, slug=slug, code=generation)), cursors)]
        return kept[0]

    return StdioServer(CallPipeline(_NoLimiter(), audit), current, spawn=spawn)


def compose_snapshot(sources: Sequence[LocalSource], expose: Exposure, policy: Policy) -> Snapshot:
    """Compose the snapshot of the documents."""
    operations = [one for source in sources for one in _operations(source, is_listed=expose is not Exposure.QUERY)]
    is_queried = expose is not Exposure.TOOLS
    queried = [QueriedSource(id=source.id, name=source.name, version=1) for source in sources if is_queried]
    return replace(
        _snapshot(compose(operations, (), (), with_queries=is_queried), policy),
        queried=(*sorted(queried, key=lambda source: source.name), *queried_listed(operations, queried)),
    )


def _snapshot(composed: Composition, policy: Policy, *, slug: str = LOCAL, code: int = 0) -> Snapshot:
    return Snapshot(
        tenant=LOCAL,
        revision=1,
        policy=policy,
        tools=composed.tools,
        by_name={tool.name: tool for tool in composed.tools},
        slug=slug,
        resources=composed.resources,
        templates=composed.templates,
        prompts=composed.prompts,
        code=code,
        operations=composed.operations,
        names=composed.names,
    )


def _registry(view: SnapshotView, cursors: Cursors) -> Registry:
    slug = view.snapshot.slug
    principal = Principal(tenant=LOCAL, slug=slug, key=KeyId(LOCAL), subject=LOCAL, scopes=frozenset({Scope.MCP}))
    return Registry(principal, DEFAULT_PROFILE, view, cursors)


def _cursors() -> Cursors:
    return Cursors(secrets.token_bytes(CURSOR_KEY_BYTES))


def _operations(source: LocalSource, *, is_listed: bool) -> Sequence[LoadedOperation]:
    return [
        LoadedOperation(
            tool=Tool(
                name=stored.tool,
                definition=stored.definition,
                safety=stored.safety,
                safety_reasons=(),
                origin=PrimitiveOrigin.SOURCE,
                operation=stored.id,
                source=source.id,
                source_name=source.name,
                identity=stored.identity,
                plan=stored.plan,
                tags=stored.tags,
            ),
            operation_id=stored.operation_id,
            is_listed=is_listed,
        )
        for stored in encode_operations(source.id, source.compilation)
    ]


class _Outlines:
    """The outlines of the documents, decoded on first use; see `Outlines`."""

    def __init__(self, sources: Sequence[LocalSource]) -> None:
        self._stored = {source.id: source.compilation.outline for source in sources}
        self._decoded: dict[SourceId, DocumentIndex] = {}

    async def of(self, tenant: TenantId, queried: Queried) -> DocumentIndex:
        """Return the outline, or raise NotFound."""
        source = queried.source
        if source.kind is not QueriedKind.DOCUMENT:
            return DocumentIndex(await run_in_thread(SNAPSHOT_LOADS, tenant, outline_tools, source.name, queried.tools))
        if source.id not in self._stored:
            raise NotFound("there is no such document")
        if source.id not in self._decoded:
            outline, size = await run_in_thread(SNAPSHOT_LOADS, tenant, decode_outline, self._stored[source.id])
            self._decoded[source.id] = DocumentIndex(outline, size)
        return self._decoded[source.id]


class _InputSchemas:
    """The full input schemas of the documents' tools; see `InputSchemas`."""

    def __init__(self, sources: Sequence[LocalSource]) -> None:
        self._known = {
            (source.id, made.identity): made.input_schema
            for source in sources
            for made in source.compilation.operations
        }

    async def of(self, tenant: TenantId, tool: Tool) -> bytes | None:
        """Return the full input schema."""
        del tenant
        return self._known.get((tool.source, tool.identity))


class LocalCredentials:
    """The credentials that were given with the documents; see `SecretReader`."""

    def __init__(self, sources: Sequence[LocalSource]) -> None:
        self._known = {source.id: source.credentials for source in sources}

    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        """Return the credentials of a document by scheme."""
        del tenant
        return self._known.get(source, {})

    async def named(self, tenant: TenantId, name: str) -> NamedCredential | None:
        """Return None: only declared handlers name credentials."""
        del tenant, name
        return None


class _NoLimiter:
    """Admits every call; the stream server limits the open requests. See `Limiter`."""

    def admit(self, tenant: TenantId, key: KeyId, limits: Limits) -> "_NoSlot":
        """Admit a call."""
        del tenant, key, limits
        return _NoSlot()

    def admit_inner(self, tenant: TenantId, key: KeyId, limits: Limits) -> AbstractAsyncContextManager[None]:
        """Admit a call inside another one."""
        return self.admit(tenant, key, limits)


class _NoSlot(nullcontext[None]):
    """The slot of an uncounted call; see `Admission`."""

    def released(self) -> AbstractAsyncContextManager[None]:
        """Do nothing."""
        return nullcontext()


class LoggedCalls:
    """Writes the record of each call as a log line. See `AuditSink`."""

    async def write(self, record: CallRecord) -> None:
        """Log one record."""
        log.info("call_recorded", **msgspec.structs.asdict(record) | {"digest": record.digest.hex()})

    def note(self, record: CallRecord, rule: DecidingRule, reason: str) -> None:
        """Log one refusal."""
        log.info("call_refused", tool=record.tool, outcome=record.outcome, rule=rule.kind, reason=reason)


class UnrecordedCalls:
    """Records no call: the program that calls is the one that serves. See `AuditSink`."""

    async def write(self, record: CallRecord) -> None:
        """Do nothing."""

    def note(self, record: CallRecord, rule: DecidingRule, reason: str) -> None:
        """Do nothing."""
