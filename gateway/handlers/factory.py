"""Factory of handlers for declarations and Python functions; the only module that knows every kind of handler."""

from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from gateway.catalog.overrides.overlay import without_pinned
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.definitions.excerpts import shorten
from gateway.definitions.handlers.parser import parse_handler
from gateway.definitions.handlers.specs import (
    HandlerSpec,
    HttpSpec,
    OpenApiSpec,
    StaticSpec,
    StepsSpec,
    TemplateSpec,
)
from gateway.definitions.json_schema.validator import Validator
from gateway.definitions.json_schema.validator_cache import Validators
from gateway.definitions.large_results.read_result import READ_RESULT
from gateway.definitions.templates.template import Tree
from gateway.domain.fairness.thread_kinds import SNAPSHOT_LOADS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.json_text import decode_json
from gateway.domain.live_sources import LiveKind
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.errors import BadInput
from gateway.handlers.api_query import Queries, is_interactive
from gateway.handlers.completion import DeclaredCompleter, PythonCompleter
from gateway.handlers.credentials import is_among
from gateway.handlers.declared_results import StaticAction, TemplateAction
from gateway.handlers.http import HttpHandler
from gateway.handlers.http_request import EgressContext, HttpRequester
from gateway.handlers.interfaces import Completer, Handler, ResourceHandler, SecretReader, ToolHandler
from gateway.handlers.limits import MAX_INLINE_DECLARATION_BYTES, MAX_INVALID_REASON_LENGTH
from gateway.handlers.live.handlers import (
    LiveAction,
    LiveCompleter,
    LiveRequests,
    LiveTarget,
    decode_live,
    mirrored_schema,
)
from gateway.handlers.live.results import OwnUris
from gateway.handlers.local_handler import HandlerSubject, LocalHandler, UnavailableHandler
from gateway.handlers.openapi_operation import OperationHandler
from gateway.handlers.overridden_operation import OverriddenHandler
from gateway.handlers.pinned_operation import PinnedHandler
from gateway.handlers.previews.steps import StepPreview
from gateway.handlers.python.registry import CodeOperation, PythonHandler, PythonHandlers
from gateway.handlers.python.runner import PythonAction
from gateway.handlers.response_body.result_processes import ResultProcesses
from gateway.handlers.result_forms import ResultForm
from gateway.handlers.result_reader import NO_RESULTS, ReadResultHandler, ResultReader, ResultResource
from gateway.handlers.steps import StepsAction
from gateway.upstream.auth.delegation import Delegations
from gateway.upstream.auth.oauth_tokens import Tokens
from gateway.upstream.body_room import BodyRoom
from gateway.upstream.client import UpstreamClient

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A resolved imported operation, with its fixed arguments."""

    operation: Tool
    handler: Handler[UpstreamResponse]
    validator: Validator
    fixed: Tree


Runs = StaticSpec | TemplateSpec | HttpSpec | StepsSpec | Pinned | PythonHandler | LiveTarget | UnavailableHandler


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedHandler:
    """The resolved handler of one primitive, independent of the form of its results."""

    subject: HandlerSubject
    runs: Runs
    egress: EgressContext
    completer: Completer | None

    @property
    def is_interactive(self) -> bool:
        """True if a call may send notifications or requests to the client before it ends."""
        return isinstance(self.runs, StepsSpec | PythonHandler | LiveTarget)

    def handler(self, form: ResultForm[_Result]) -> Handler[_Result]:
        """Return the handler for results of this form."""
        match self.runs:
            case StaticSpec() as spec:
                return LocalHandler(self.subject, StaticAction(spec, form))
            case TemplateSpec() as spec:
                return LocalHandler(self.subject, TemplateAction(spec, form))
            case StepsSpec() as spec:
                return LocalHandler(  # guard: steps-outline
                    self.subject, StepsAction(spec, form, self.egress), outline=StepPreview(spec, self.egress)
                )
            case HttpSpec() as spec:
                return HttpHandler(HttpRequester(spec, self.egress), form)
            case Pinned() as found:
                return PinnedHandler(
                    found.operation, found.handler, validator=found.validator, fixed=found.fixed, form=form
                )
            case PythonHandler() as code:
                work = PythonAction(code=code, form=form, upstream=self.egress.upstream)
                return LocalHandler(self.subject, work)
            case LiveTarget() as target:
                return LocalHandler(self.subject, LiveAction(target=target, form=form))
            case UnavailableHandler() as broken:
                return broken


@dataclass(frozen=True, slots=True)
class HandlerDependencies:
    """Optional dependencies. Without `code`, `queries` or `live`, handlers of that kind are unavailable."""

    code: PythonHandlers | None = None
    tokens: Tokens | None = None
    queries: Queries | None = None
    live: LiveRequests | None = None
    delegations: Delegations | None = None
    results: ResultReader | None = None
    processes: ResultProcesses | None = None


class HandlerFactory:
    """Creates handlers from their shared dependencies."""

    def __init__(
        self,
        upstream: UpstreamClient,
        secrets: SecretReader,
        validators: Validators,
        parts: HandlerDependencies | None = None,
    ) -> None:
        parts = parts or HandlerDependencies()
        self._upstream = upstream
        self._secrets = secrets
        self._validators = validators
        self._code = parts.code
        self._queries = parts.queries
        self._live = parts.live
        self._processes = parts.processes or ResultProcesses()
        self._results = parts.results or ResultReader(NO_RESULTS, BodyRoom(), self._processes)
        self._tokens = parts.tokens or Tokens(upstream)
        self._delegations = parts.delegations
        self._schemas = None if parts.queries is None else parts.queries.schemas

    def operation(self, tenant: TenantId, tool: Tool) -> Handler[UpstreamResponse]:
        """Return the handler of an imported operation.

        Raises:
            NotYetSupported: this version cannot write the requests of the operation.
        """
        handler = OperationHandler(
            tenant,
            tool,
            upstream=self._upstream,
            secrets=self._secrets,
            tokens=self._tokens,
            delegations=self._delegations,
        )
        return OverriddenHandler(tool, handler, self._processes) if tool.pinned or tool.result else handler

    def code_operation(self, snapshot: Snapshot, tool: Tool) -> Handler[UpstreamResponse] | None:
        """Return the handler of an operation that a program imported; None for any other tool of code."""
        code = None if self._code is None else self._code.find(Family.TOOL, tool.name, snapshot.slug)
        if not isinstance(code, CodeOperation):
            return None
        known = replace(tool, source=code.source, plan=code.plan)
        return OperationHandler(snapshot.tenant, known, upstream=self._upstream, secrets=code, tokens=self._tokens)

    async def validator(self, tenant: TenantId, tool: Tool) -> Validator:
        """Return the validator of a tool's arguments: of the full input schema, if the listed one is shortened.

        Raises:
            Unavailable: the full schema cannot be read now.
        """
        full = await self._schemas.of(tenant, tool) if self._schemas is not None and tool.is_shortened else None
        if full is None:  # guard: validated-in-full
            return await self._validators.of(tool.definition)
        return await self._validators.of(b'{"inputSchema":' + without_pinned(full, tool.pinned) + b"}")

    def builtin(self, tenant: TenantId, tool: Tool) -> tuple[ToolHandler, bool]:
        """Return the handler of a builtin tool, and True if it may send a request to the client."""
        if tool.name == READ_RESULT:
            return ReadResultHandler(self._results), False
        if self._queries is None:
            return UnavailableHandler("the query tools are not available in this process"), False
        return self._queries.handler(tenant, tool), is_interactive(tool)

    def result(self, uri: str) -> ResourceHandler:
        """Return the handler of a stored result."""
        return ResultResource(self._results, uri)

    async def behind(self, snapshot: Snapshot, item: Tool | Primitive, family: Family) -> ResolvedHandler:
        """Resolve the handler of a primitive that is declared or written in Python.

        Raises:
            NotYetSupported: this version cannot write the requests of the operation.
        """
        egress = EgressContext(
            tenant=snapshot.tenant,
            upstream=self._upstream,
            secrets=self._secrets,
            origins=snapshot.http_origins,
            delegations=self._delegations,
            processes=self._processes,
        )
        subject = HandlerSubject(name=item.name, definition=item.definition, handler=item.handler)
        runs: Runs
        completer: Completer | None = None
        if item.origin is PrimitiveOrigin.CODE:
            code = None if self._code is None else self._code.find(family, item.name, snapshot.slug)
            runs = UnavailableHandler("the registered code is not available in this process")
            if isinstance(code, PythonHandler):
                runs = code
                completer = None if code.complete is None else PythonCompleter(code, code.complete)
        elif item.origin is PrimitiveOrigin.LIVE:
            runs = self._live_handler(snapshot, item, family)
            completer = LiveCompleter(runs) if isinstance(runs, LiveTarget) else None
        else:
            if len(item.handler) > MAX_INLINE_DECLARATION_BYTES:
                spec = await run_in_thread(SNAPSHOT_LOADS, snapshot.tenant, _read_spec, item.handler, family)
            else:
                spec = _read_spec(item.handler, family)
            if isinstance(spec, UnavailableHandler):
                runs = spec
            else:
                runs = await self._resolve_declared(snapshot, spec)
                completer = DeclaredCompleter(spec.completions, egress) if spec.completions else None
        return ResolvedHandler(subject=subject, runs=runs, egress=egress, completer=completer)

    def _live_handler(self, snapshot: Snapshot, item: Tool | Primitive, family: Family) -> Runs:
        live_handler = decode_live(item.handler)
        source = snapshot.live_sources.get(live_handler.source)
        if self._live is None or source is None:
            return UnavailableHandler("live sources are not available in this process")
        origins = snapshot.http_origins if source.kind is LiveKind.MCP else None
        if origins is not None and not is_among(str(source.settings.get("url")), origins):  # guard: live-origin-called
            return UnavailableHandler("the tenant's policy does not allow requests to the origin of the live source")
        own = OwnUris(
            source=source.name,
            schemes=snapshot.live_schemes.get(source.name, frozenset()),
            lists=lambda uri: any(one.name == uri and one.source_name == source.name for one in snapshot.resources),
        )
        return LiveTarget(
            requests=self._live,
            source=source,
            family=family,
            remote=live_handler.remote,
            own=own,
            page=live_handler.page,
            mirrored=mirrored_schema(item.definition) if family is Family.TOOL else None,
        )

    async def _resolve_declared(self, snapshot: Snapshot, spec: HandlerSpec) -> Runs:
        action = spec.action
        if not isinstance(action, OpenApiSpec):
            return action
        operation = snapshot.operation(action.source, action.operation)
        if operation is None:
            return UnavailableHandler(f"the source {action.source!r} has no operation {action.operation!r} any more")
        return Pinned(
            operation=operation,
            handler=self.operation(snapshot.tenant, operation),
            validator=await self.validator(snapshot.tenant, operation),
            fixed=action.arguments,
        )


def _read_spec(handler: bytes, family: Family) -> HandlerSpec | UnavailableHandler:
    """Return the parsed declaration, or a handler that refuses each call if this version cannot read it."""
    try:
        return parse_handler(decode_json(handler), family)
    except (BadInput, msgspec.MsgspecError) as error:
        reason = shorten(str(error), MAX_INVALID_REASON_LENGTH)
        return UnavailableHandler(f"the stored handler is not valid in this version; replace it: {reason}")
