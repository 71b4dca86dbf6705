"""A tool joined with what runs it: compiled on its first call, shared by all calls of its snapshot."""

from dataclasses import dataclass

from gateway.definitions.validators import Validator, Validators
from gateway.domain.identifiers import TenantId
from gateway.domain.policy import Decision, Limits, Policy
from gateway.domain.tools import Tool
from gateway.handlers.operations import OperationHandler
from gateway.handlers.port import Handler, SecretReader
from gateway.upstream.pool import Upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTool:
    """A tool ready to be called; nothing in it depends on the arguments."""

    tenant: TenantId
    tool: Tool
    validator: Validator
    handler: Handler
    decision: Decision
    limits: Limits


class Binder:
    """Makes the handlers of tools."""

    def __init__(self, upstream: Upstream, secrets: SecretReader, validators: Validators) -> None:
        self._upstream = upstream
        self._secrets = secrets
        self._validators = validators

    async def bind(self, tenant: TenantId, tool: Tool, policy: Policy) -> BoundTool:
        """The tool with its validator, its handler and what the policy says of it."""
        return BoundTool(
            tenant=tenant,
            tool=tool,
            validator=await self._validators.of(tool.definition),
            handler=OperationHandler(tenant, tool, upstream=self._upstream, secrets=self._secrets),
            decision=policy.decision_for(tool.safety),
            limits=policy.limits,
        )
