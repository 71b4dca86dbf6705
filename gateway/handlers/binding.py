"""Bound primitives: primitives with handler, policy and limits. They depend on a snapshot, but not on a call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec

from gateway.catalog.snapshots.listed_form import is_exact
from gateway.catalog.snapshots.primitive_policies import guardrails_of, policy_of
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.definitions.json_schema.validator import Validator
from gateway.definitions.json_schema.validator_cache import Validators
from gateway.definitions.policy.primitive_policy import PrimitivePolicy
from gateway.definitions.uri.templates import UriTemplate
from gateway.domain.calls.mcp_tasks import TaskSupport
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.identifiers import PrimitiveId, TenantId
from gateway.domain.json_text import decode_object
from gateway.domain.listed.arguments import restore_arguments
from gateway.domain.listed.definition import renamed_of
from gateway.domain.primitives import Family, Primitive
from gateway.domain.results import Result
from gateway.domain.tenancy.guardrails import Guardrail
from gateway.domain.tenancy.policy import Decision, Judgement, Limits
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.handlers.factory import HandlerDependencies, HandlerFactory
from gateway.handlers.interfaces import (
    Call,
    Completer,
    NeedsCredentials,
    Prepared,
    PromptHandler,
    ResourceHandler,
    SecretReader,
    ToolHandler,
)
from gateway.handlers.result_forms import PromptForm, ResourceForm, ToolForm
from gateway.upstream.client import UpstreamClient


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTool:
    """A tool ready for calls, independent of their arguments.

    `output` is set if results must conform to a declared schema. `is_interactive` is True if a call may send
    notifications or requests to the client before it ends. `task_support` is the definition's rule for tasks.
    """

    tenant: TenantId
    tool: Tool
    validator: Validator
    handler: ToolHandler
    policy: PrimitivePolicy
    limits: Limits
    output: Validator | None = None
    is_interactive: bool = False
    guardrails: tuple[Guardrail, ...] = ()
    task_support: TaskSupport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundResource:
    """One resource ready to be read: a concrete resource, or a template at one URI with its variables."""

    tenant: TenantId
    primitive: Primitive
    uri: str
    handler: ResourceHandler
    policy: PrimitivePolicy
    limits: Limits
    mime_type: str | None = None
    variables: Mapping[str, str]
    is_interactive: bool = False
    guardrails: tuple[Guardrail, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTemplate:
    """A resource template ready to be matched; `handler_at` returns the handler of one of its URIs."""

    tenant: TenantId
    primitive: Primitive
    template: UriTemplate
    handler_at: Callable[[str], ResourceHandler]
    completer: Completer | None
    policy: PrimitivePolicy
    policy_at: Callable[[str], PrimitivePolicy] | None = None
    """Returns the policy of one URI of the template; None if the tenant has no rules."""
    limits: Limits
    mime_type: str | None = None
    is_interactive: bool = False
    guardrails: tuple[Guardrail, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The variables, in the order of the template."""
        return tuple(self.template.variables)

    def at(self, uri: str) -> BoundResource | None:
        """Return the resource at this URI; None if the template does not match it."""
        variables = self.template.match(uri)
        if variables is None:
            return None
        policy = self.policy if self.policy_at is None else self.policy_at(uri)  # guard: policy-of-the-uri
        return BoundResource(
            tenant=self.tenant,
            primitive=self.primitive,
            uri=uri,
            handler=self.handler_at(uri),
            policy=policy,
            limits=self.limits,
            mime_type=self.mime_type,
            variables=variables,
            is_interactive=self.is_interactive or policy.needs_person,
            guardrails=self.guardrails,
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
    policy: PrimitivePolicy
    limits: Limits
    description: str | None = None
    is_interactive: bool = False
    guardrails: tuple[Guardrail, ...] = ()


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


class _Execution(msgspec.Struct, rename="camel"):
    """The member of a tool definition about tasks."""

    task_support: TaskSupport | None = None


class _ToolExecution(msgspec.Struct):
    """The field of a listed tool definition about its execution."""

    execution: _Execution = msgspec.field(default_factory=_Execution)


_decode_executed = msgspec.json.Decoder(_ToolExecution).decode


def _task_support(definition: bytes) -> TaskSupport | None:
    # most definitions have no such member, and some are large
    return _decode_executed(definition).execution.task_support if b'"taskSupport"' in definition else None


_OWN_RESULT_POLICY = PrimitivePolicy(judgement=Judgement(decision=Decision.ALLOW, reason="a part of an own result"))


class Binder:
    """Binds primitives to their handlers."""

    def __init__(
        self,
        upstream: UpstreamClient,
        secrets: SecretReader,
        validators: Validators,
        parts: HandlerDependencies | None = None,
    ) -> None:
        self._validators = validators
        self._kinds = HandlerFactory(upstream, secrets, validators, parts)

    async def bind(self, snapshot: Snapshot, tool: Tool, profile: str = DEFAULT_PROFILE) -> BoundTool:
        """Return the tool with its validators, its handler and its policy in the profile.

        Raises:
            NotYetSupported: this version cannot write the requests of the operation.
        """
        policy = policy_of(snapshot, tool, profile)
        handler, talks = await self._tool_handler(snapshot, tool)
        return BoundTool(
            tenant=snapshot.tenant,
            tool=tool,
            validator=await self._kinds.validator(snapshot.tenant, tool),
            handler=handler,
            policy=policy,
            limits=snapshot.policy.limits,
            output=await self._validators.of_output(tool.definition, is_imported=tool.origin is PrimitiveOrigin.SOURCE),
            is_interactive=talks or policy.needs_person,
            guardrails=guardrails_of(snapshot, tool),
            task_support=_task_support(tool.definition),
        )

    async def bind_resource(
        self, snapshot: Snapshot, primitive: Primitive, profile: str = DEFAULT_PROFILE
    ) -> BoundResource:
        """Return the resource with its handler and its policy in the profile."""
        listed = _decode_listed(primitive.definition)
        behind = await self._kinds.behind(snapshot, primitive, Family.RESOURCE)
        policy = policy_of(snapshot, primitive, profile)
        return BoundResource(
            tenant=snapshot.tenant,
            primitive=primitive,
            uri=primitive.name,
            handler=behind.handler(ResourceForm(primitive.name, listed.mime_type)),
            policy=policy,
            limits=snapshot.policy.limits,
            mime_type=listed.mime_type,
            variables={},
            is_interactive=behind.is_interactive or policy.needs_person,
            guardrails=guardrails_of(snapshot, primitive),
        )

    def bind_result(self, snapshot: Snapshot, uri: str) -> BoundResource:
        """Return the resource of a stored result; its owner may read it under any policy."""
        return BoundResource(
            tenant=snapshot.tenant,
            primitive=Primitive(
                id=PrimitiveId("builtin:result"),
                family=Family.RESOURCE,
                name=uri,
                definition=b"{}",
                origin=PrimitiveOrigin.BUILTIN,
            ),
            uri=uri,
            handler=self._kinds.result(uri),
            policy=_OWN_RESULT_POLICY,
            limits=snapshot.policy.limits,
            variables={},
        )

    async def bind_template(
        self, snapshot: Snapshot, primitive: Primitive, profile: str = DEFAULT_PROFILE
    ) -> BoundTemplate:
        """Return the resource template with the factory of its handlers and its policy in the profile."""
        listed = _decode_listed(primitive.definition)
        behind = await self._kinds.behind(snapshot, primitive, Family.TEMPLATE)
        policy = policy_of(snapshot, primitive, profile)
        return BoundTemplate(
            tenant=snapshot.tenant,
            primitive=primitive,
            template=UriTemplate.parse(primitive.name),
            handler_at=lambda uri: behind.handler(ResourceForm(uri, listed.mime_type)),
            completer=behind.completer,
            policy=policy,
            policy_at=partial(policy_of, snapshot, primitive, profile) if snapshot.policy.rules else None,
            limits=snapshot.policy.limits,
            mime_type=listed.mime_type,
            is_interactive=behind.is_interactive or policy.needs_person,
            guardrails=guardrails_of(snapshot, primitive),
        )

    async def bind_prompt(
        self, snapshot: Snapshot, primitive: Primitive, profile: str = DEFAULT_PROFILE
    ) -> BoundPrompt:
        """Return the prompt with its handler and its policy in the profile."""
        listed = _decode_listed(primitive.definition)
        behind = await self._kinds.behind(snapshot, primitive, Family.PROMPT)
        policy = policy_of(snapshot, primitive, profile)
        return BoundPrompt(
            tenant=snapshot.tenant,
            primitive=primitive,
            arguments=tuple(argument.name for argument in listed.arguments or ()),
            required=frozenset(argument.name for argument in listed.arguments or () if argument.required),
            handler=behind.handler(PromptForm(listed.description)),
            completer=behind.completer,
            policy=policy,
            limits=snapshot.policy.limits,
            description=listed.description,
            is_interactive=behind.is_interactive or policy.needs_person,
            guardrails=guardrails_of(snapshot, primitive),
        )

    async def _tool_handler(self, snapshot: Snapshot, tool: Tool) -> tuple[ToolHandler, bool]:
        if tool.origin is PrimitiveOrigin.SOURCE:
            return self._kinds.operation(snapshot.tenant, tool), False
        if tool.origin is PrimitiveOrigin.BUILTIN:
            return self._kinds.builtin(snapshot.tenant, tool)
        if tool.origin is PrimitiveOrigin.CODE and (found := self._kinds.code_operation(snapshot, tool)) is not None:
            return found, False
        behind = await self._kinds.behind(snapshot, tool, Family.TOOL)
        handler, stored = behind.handler(ToolForm()), decode_object(tool.definition)
        renamed: Mapping[str, str] = {} if is_exact(tool, stored) else renamed_of(stored)
        return _RenamedArguments(handler, renamed) if renamed else handler, behind.is_interactive


class _RenamedArguments:
    """A handler whose callers give arguments by their listed or their stored names."""

    def __init__(self, handler: ToolHandler, renamed: Mapping[str, str]) -> None:
        self._handler = handler
        self._renamed = renamed

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Settle the arguments, by their stored names, as the tool does."""
        return self._handler.settle(restore_arguments(arguments, self._renamed))

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """Return the call for settled arguments."""
        return self._handler.prepare(arguments)

    async def require_credentials(self) -> None:
        """Check the stored credentials of the tool; see `NeedsCredentials`."""
        if isinstance(self._handler, NeedsCredentials):
            await self._handler.require_credentials()

    async def preview(self, prepared: Prepared) -> str:
        """Show the tool's preview."""
        return await self._handler.preview(prepared)

    async def run(self, prepared: Prepared, call: Call, /) -> UpstreamResponse | Result:
        """Run the tool."""
        return await self._handler.run(prepared, call)
