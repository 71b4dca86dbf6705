"""A tenant with primitives of its own, called through the real stations: no catalog, no protocol, no database."""

import inspect
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.calls.arguments.recorded_arguments import ArgumentRecorder
from gateway.calls.pipeline import CallPipeline
from gateway.calls.safeguards import Safeguards
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.definitions.json_schema.validator_cache import Validators
from gateway.domain.audit import CallRecord
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import KeyId, PrimitiveId, SourceId, TenantId
from gateway.domain.primitives import Family, Primitive
from gateway.domain.queries import Queried
from gateway.domain.results import Completions, Contents, Messages
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import Limits, Policy, Safety
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.errors import DecidingRule, LimitExceeded, NotFound
from gateway.handlers.binding import Binder, BoundPrompt, BoundResource, BoundTemplate, BoundTool
from gateway.handlers.factory import HandlerDependencies
from gateway.handlers.interfaces import Peer
from gateway.handlers.null_peer import NULL_PEER
from gateway.handlers.python.context import Context
from gateway.handlers.python.registry import PythonHandler
from gateway.handlers.python.signatures import CompletionFunction
from gateway.upstream.client import UpstreamClient
from tests.support.slots import Slot

ACME = Principal(
    tenant=TenantId("ten_acme"), slug="acme", key=KeyId("key_1"), subject="alice", scopes=frozenset({Scope.MCP})
)
ANYTHING: Mapping[str, object] = {"type": "object", "properties": {}}


@dataclass(slots=True)
class CallJournal:
    """Limiter and trail: lets calls in, and writes down how each ended."""

    records: list[CallRecord] = field(default_factory=list[CallRecord])
    full: bool = False
    inside: int = 0

    @property
    def lines(self) -> list[str]:
        """Records of the trail, one per line."""
        return [f"{record.action} {record.tool} {record.kind.value} {record.outcome}" for record in self.records]

    def admit(self, tenant: TenantId, key: KeyId, limits: Limits) -> Slot:
        return Slot(self._place())

    def admit_inner(self, tenant: TenantId, key: KeyId, limits: Limits) -> AbstractAsyncContextManager[None]:
        return self._place()

    @asynccontextmanager
    async def _place(self) -> AsyncGenerator[None]:
        if self.full:
            raise LimitExceeded("too many calls", retry_after_s=1.5)
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    async def write(self, record: CallRecord) -> None:
        self.records.append(record)

    def note(self, record: CallRecord, rule: DecidingRule, reason: str) -> None:
        self.records.append(record)


@dataclass(slots=True)
class Secrets:
    """The tenant's credentials by name."""

    held: dict[str, NamedCredential] = field(default_factory=dict[str, NamedCredential])

    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        return {}

    async def named(self, tenant: TenantId, name: str) -> NamedCredential | None:
        return self.held.get(name)


@dataclass(slots=True)
class Code:
    """Functions by family and name."""

    functions: dict[tuple[Family, str], PythonHandler] = field(default_factory=dict[tuple[Family, str], PythonHandler])

    def find(self, family: Family, name: str, slug: str) -> PythonHandler | None:
        return self.functions.get((family, name))


class HandlerBench:
    """One tenant's primitives, and what finds and calls them."""

    def __init__(self, upstream: UpstreamClient) -> None:
        self.journal = CallJournal()
        self.secrets = Secrets()
        self.code = Code()
        self.principal = ACME
        self.snapshot: Snapshot = Snapshot(
            tenant=ACME.tenant, slug="acme", revision=1, policy=Policy(), tools=(), by_name={}, operations={}
        )
        recorder = ArgumentRecorder(str.encode)
        self.calls = CallPipeline(self.journal, self.journal, safeguards=Safeguards(recorder=recorder))
        self._binder = Binder(upstream, self.secrets, Validators(), HandlerDependencies(code=self.code))

    def set_policy(self, policy: Policy) -> None:
        """Decision of the tenant for each safety level."""
        self.snapshot = replace(self.snapshot, policy=policy)

    def has_tool(
        self,
        name: str,
        handler: Mapping[str, object],
        *,
        schema: Mapping[str, object] = ANYTHING,
        output: Mapping[str, object] | None = None,
        safety: Safety = Safety.SAFE,
    ) -> None:
        """A declared tool."""
        raw = json.dumps(handler).encode()
        self._add_tool(name, raw, PrimitiveOrigin.CUSTOM, schema=schema, output=output, safety=safety)

    def replace_handler(self, name: str, handler: bytes) -> None:
        """Other bytes behind a tool than could be declared."""
        tool = replace(self.snapshot.by_name[name], handler=handler)
        self.snapshot = replace(self.snapshot, by_name={**self.snapshot.by_name, name: tool})

    def has_resource(self, uri: str, handler: Mapping[str, object], **definition: object) -> None:
        """A declared resource."""
        self._add(Family.RESOURCE, uri, {"uri": uri, "name": uri, **definition}, handler)

    def has_template(self, template: str, handler: Mapping[str, object], **definition: object) -> None:
        """A declared resource template."""
        self._add(Family.TEMPLATE, template, {"uriTemplate": template, "name": template, **definition}, handler)

    def has_prompt(
        self, name: str, handler: Mapping[str, object], *arguments: str, required: Sequence[str] = ()
    ) -> None:
        """A declared prompt."""
        listed = [{"name": argument, "required": argument in required} for argument in (*required, *arguments)]
        self._add(Family.PROMPT, name, {"name": name, "arguments": listed}, handler)

    def has_code(
        self,
        family: Family,
        name: str,
        function: Callable[[Context], object],
        *,
        timeout_s: float = 60.0,
        complete: CompletionFunction | None = None,
        **definition: Any,
    ) -> None:
        """A primitive of code."""
        is_async = inspect.iscoroutinefunction(function)
        self.code.functions[family, name] = PythonHandler(
            function=function, is_async=is_async, timeout_s=timeout_s, complete=complete
        )
        if family is Family.TOOL:
            self._add_tool(name, b"", PrimitiveOrigin.CODE, **definition)
            return
        key = {Family.RESOURCE: "uri", Family.TEMPLATE: "uriTemplate"}.get(family, "name")
        self._add(family, name, {key: name, **definition}, None)

    @property
    def profile(self) -> str:
        return "default"

    @property
    def revision(self) -> int:
        return self.snapshot.revision

    @property
    def summary_threshold(self) -> int:
        """No profile."""
        return 0

    @property
    def result_scope(self) -> str:
        """No profile."""
        return "default"

    @property
    def selects_fields(self) -> bool:
        """No profile."""
        return False

    @property
    def policy_version(self) -> int:
        return self.snapshot.policy.version

    async def tool(self, name: str) -> BoundTool | None:
        """Find a tool, as a registry does."""
        found = self.snapshot.by_name.get(name)
        return None if found is None else await self._binder.bind(self.snapshot, found)

    async def inner_tool(self, name: str) -> BoundTool | None:
        """Find a tool for a handler, as a registry does."""
        return await self.tool(name)

    async def resource(self, uri: str) -> BoundResource | None:
        """Find a resource, as a registry does."""
        for primitive in self.snapshot.resources:
            if primitive.name == uri:
                return await self._binder.bind_resource(self.snapshot, primitive)
        for primitive in self.snapshot.templates:
            made = (await self._binder.bind_template(self.snapshot, primitive)).at(uri)
            if made is not None:
                return made
        return None

    def queried(self) -> Sequence[Queried]:
        """Nothing: a household has no sources that are queried."""
        return ()

    async def operation(self, tool: Tool) -> BoundTool:
        """An operation, as a registry binds it."""
        return await self._binder.bind(self.snapshot, tool)

    async def call(
        self, name: str, arguments: Mapping[str, object] | None = None, peer: Peer = NULL_PEER
    ) -> dict[str, Any]:
        """The result object of a tool call."""
        bound = await self.tool(name)
        if bound is None:
            raise NotFound(name)
        members = await self.calls.run(
            self.principal, bound, arguments or {}, correlation_id="c-1", peer=peer, lookup=self
        )
        result: dict[str, Any] = json.loads(b"{" + members + b"}")
        return result

    async def read(self, uri: str, peer: Peer = NULL_PEER) -> Contents:
        """Content of a URI."""
        bound = await self.resource(uri)
        if bound is None:
            raise NotFound(uri)
        return await self.calls.read(self.principal, bound, correlation_id="c-1", peer=peer, lookup=self)

    async def get(self, name: str, arguments: Mapping[str, str] | None = None, peer: Peer = NULL_PEER) -> Messages:
        """Content of a prompt."""
        found = next(primitive for primitive in self.snapshot.prompts if primitive.name == name)
        bound = await self._binder.bind_prompt(self.snapshot, found)
        return await self.calls.get_prompt(
            self.principal, bound, arguments or {}, correlation_id="c-1", peer=peer, lookup=self
        )

    async def complete(
        self, name: str, argument: str, typed: str, chosen: Mapping[str, str] | None = None
    ) -> Completions:
        """Completions of an argument of a prompt, or of a variable of a template."""
        bound = await self._completable(name)
        return await self.calls.complete(self.principal, bound, (argument, typed), chosen or {}, correlation_id="c-1")

    async def _completable(self, name: str) -> BoundPrompt | BoundTemplate:
        for prompt in self.snapshot.prompts:
            if prompt.name == name:
                return await self._binder.bind_prompt(self.snapshot, prompt)
        found = next(template for template in self.snapshot.templates if template.name == name)
        return await self._binder.bind_template(self.snapshot, found)

    def _add_tool(
        self,
        name: str,
        handler: bytes,
        origin: PrimitiveOrigin,
        *,
        schema: Mapping[str, object] = ANYTHING,
        output: Mapping[str, object] | None = None,
        safety: Safety = Safety.SAFE,
    ) -> None:
        listed: dict[str, object] = {"name": name, "description": name, "inputSchema": schema}
        if output is not None:
            listed["outputSchema"] = output
        tool = Tool(
            name=name,
            definition=json.dumps(listed).encode(),
            safety=safety,
            safety_reasons=(),
            origin=origin,
            handler=handler,
        )
        self.snapshot = replace(self.snapshot, by_name={**self.snapshot.by_name, name: tool})

    def _add(
        self, family: Family, name: str, definition: Mapping[str, object], handler: Mapping[str, object] | None
    ) -> None:
        primitive = Primitive(
            id=PrimitiveId(f"pri_{name}"),
            family=family,
            name=name,
            definition=json.dumps(definition).encode(),
            handler=b"" if handler is None else json.dumps(handler).encode(),
            origin=PrimitiveOrigin.CODE if handler is None else PrimitiveOrigin.CUSTOM,
        )
        snapshot = self.snapshot
        match family:
            case Family.RESOURCE:
                self.snapshot = replace(snapshot, resources=(*snapshot.resources, primitive))
            case Family.TEMPLATE:
                self.snapshot = replace(snapshot, templates=(*snapshot.templates, primitive))
            case _:
                self.snapshot = replace(snapshot, prompts=(*snapshot.prompts, primitive))
