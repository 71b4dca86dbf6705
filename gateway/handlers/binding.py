"""Primitives with their handlers, ready for calls; they depend on a snapshot, but not on a call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from gateway.catalog.snapshots.snapshots import Snapshot
from gateway.definitions.json_schema.validator import Validator
from gateway.definitions.json_schema.validator_cache import Validators
from gateway.definitions.uri.templates import UriTemplate
from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.policy import Decision, Limits
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.handlers.api_query import Queries
from gateway.handlers.factory import HandlerDependencies, HandlerFactory
from gateway.handlers.interfaces import Completer, PromptHandler, ResourceHandler, SecretReader, ToolHandler
from gateway.handlers.python.registry import PythonHandlers
from gateway.handlers.result_forms import PromptForm, ResourceForm, ToolForm
from gateway.upstream.auth.oauth_tokens import Tokens
from gateway.upstream.client import UpstreamClient


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTool:
    """A tool ready to be called; nothing in it depends on the arguments.

    `output` is set if results have to conform to a declared schema. `is_interactive` is True if a call may send the
    client notifications or questions before it ends.
    """

    tenant: TenantId
    tool: Tool
    validator: Validator
    handler: ToolHandler
    decision: Decision
    limits: Limits
    output: Validator | None = None
    is_interactive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundResource:
    """One resource ready to be read: a fixed one, or a template at one URI with its variables."""

    tenant: TenantId
    primitive: Primitive
    uri: str
    handler: ResourceHandler
    decision: Decision
    limits: Limits
    mime_type: str | None = None
    variables: Mapping[str, str]
    is_interactive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTemplate:
    """A resource template ready to be matched; `handler_at` returns the handler of one of its URIs."""

    tenant: TenantId
    primitive: Primitive
    template: UriTemplate
    handler_at: Callable[[str], ResourceHandler]
    completer: Completer | None
    decision: Decision
    limits: Limits
    mime_type: str | None = None
    is_interactive: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """The variables, in the order of the template."""
        return tuple(self.template.variables)

    def at(self, uri: str) -> BoundResource | None:
        """Return the resource at this URI; None if the template does not match it."""
        variables = self.template.match(uri)
        if variables is None:
            return None
        return BoundResource(
            tenant=self.tenant,
            primitive=self.primitive,
            uri=uri,
            handler=self.handler_at(uri),
            decision=self.decision,
            limits=self.limits,
            mime_type=self.mime_type,
            variables=variables,
            is_interactive=self.is_interactive,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPrompt:
    """A prompt ready to be requested; `required` contains the names of its mandatory arguments."""

    tenant: TenantId
    primitive: Primitive
    arguments: tuple[str, ...]
    required: frozenset[str]
    handler: PromptHandler
    completer: Completer | None
    decision: Decision
    limits: Limits
    description: str | None = None
    is_interactive: bool = False


class _Argument(msgspec.Struct):
    """The fields of a listed prompt argument that a call needs."""

    name: str
    required: bool = False


class _Listed(msgspec.Struct, rename="camel"):
    """The fields of a listed definition that a call needs."""

    mime_type: str | None = None
    description: str | None = None
    arguments: list[_Argument] | None = None


_decode_listed = msgspec.json.Decoder(_Listed).decode


class Binder:
    """Binds primitives to their handlers."""

    def __init__(
        self,
        upstream: UpstreamClient,
        secrets: SecretReader,
        validators: Validators,
        code: PythonHandlers | None = None,
        tokens: Tokens | None = None,
        queries: Queries | None = None,
    ) -> None:
        self._validators = validators
        self._kinds = HandlerFactory(
            upstream, secrets, validators, HandlerDependencies(code=code, tokens=tokens, queries=queries)
        )

    async def bind(self, snapshot: Snapshot, tool: Tool) -> BoundTool:
        """Return the tool with its validators, its handler and the policy's decision.

        Raises:
            NotYetSupported: this version cannot write the requests of the operation.
        """
        decision = snapshot.policy.decision_for(tool.level)  # guard: counted-level
        handler, talks = await self._tool_handler(snapshot, tool)
        return BoundTool(
            tenant=snapshot.tenant,
            tool=tool,
            validator=await self._validators.of(tool.definition),
            handler=handler,
            decision=decision,
            limits=snapshot.policy.limits,
            output=await self._validators.of_output(tool.definition),
            is_interactive=talks or decision is Decision.CONFIRM,
        )

    async def bind_resource(self, snapshot: Snapshot, primitive: Primitive) -> BoundResource:
        """Return the resource with its handler and the policy's decision."""
        listed = _decode_listed(primitive.definition)
        behind = await self._kinds.behind(snapshot, primitive, Family.RESOURCE)
        decision = snapshot.policy.decision_for(primitive.level)
        return BoundResource(
            tenant=snapshot.tenant,
            primitive=primitive,
            uri=primitive.name,
            handler=behind.handler(ResourceForm(primitive.name, listed.mime_type)),
            decision=decision,
            limits=snapshot.policy.limits,
            mime_type=listed.mime_type,
            variables={},
            is_interactive=behind.is_interactive or decision is Decision.CONFIRM,
        )

    async def bind_template(self, snapshot: Snapshot, primitive: Primitive) -> BoundTemplate:
        """Return the resource template with the factory of its handlers and the policy's decision."""
        listed = _decode_listed(primitive.definition)
        behind = await self._kinds.behind(snapshot, primitive, Family.TEMPLATE)
        decision = snapshot.policy.decision_for(primitive.level)
        return BoundTemplate(
            tenant=snapshot.tenant,
            primitive=primitive,
            template=UriTemplate.parse(primitive.name),
            handler_at=lambda uri: behind.handler(ResourceForm(uri, listed.mime_type)),
            completer=behind.completer,
            decision=decision,
            limits=snapshot.policy.limits,
            mime_type=listed.mime_type,
            is_interactive=behind.is_interactive or decision is Decision.CONFIRM,
        )

    async def bind_prompt(self, snapshot: Snapshot, primitive: Primitive) -> BoundPrompt:
        """Return the prompt with its handler and the policy's decision."""
        listed = _decode_listed(primitive.definition)
        behind = await self._kinds.behind(snapshot, primitive, Family.PROMPT)
        decision = snapshot.policy.decision_for(primitive.level)
        return BoundPrompt(
            tenant=snapshot.tenant,
            primitive=primitive,
            arguments=tuple(argument.name for argument in listed.arguments or ()),
            required=frozenset(argument.name for argument in listed.arguments or () if argument.required),
            handler=behind.handler(PromptForm(listed.description)),
            completer=behind.completer,
            decision=decision,
            limits=snapshot.policy.limits,
            description=listed.description,
            is_interactive=behind.is_interactive or decision is Decision.CONFIRM,
        )

    async def _tool_handler(self, snapshot: Snapshot, tool: Tool) -> tuple[ToolHandler, bool]:
        if tool.origin is PrimitiveOrigin.SOURCE:
            return self._kinds.operation(snapshot.tenant, tool), False
        if tool.origin is PrimitiveOrigin.BUILTIN:
            return self._kinds.builtin(snapshot.tenant, tool)
        behind = await self._kinds.behind(snapshot, tool, Family.TOOL)
        return behind.handler(ToolForm()), behind.is_interactive
