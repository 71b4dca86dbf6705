"""Every error the gateway raises on purpose, as one tree.

    GatewayError
    ├── BadInput                     what was sent breaks the contract; nothing was stored
    │   ├── InvalidBody              a JSON body does not have the documented form
    │   ├── InvalidCursor            a cursor that we did not issue to this caller
    │   ├── InvalidDocument          an OpenAPI document that cannot be read
    │   │   └── DocumentTooLarge     a document or body beyond its limit
    │   ├── ArgumentsInvalid         arguments that break the input schema, or that the prompt does not have
    │   ├── MissingArguments         a prompt without arguments that it cannot do without
    │   ├── DefinitionInvalid        a primitive of the tenant's own that breaks its contract
    │   │   ├── ToolValidationError
    │   │   ├── ResourceValidationError
    │   │   ├── PromptValidationError
    │   │   └── HandlerInvalid       a handler spec that is not of its documented form
    │   ├── TemplateInvalid          a template that cannot be read; the fault has the line
    │   ├── ReferenceMissing         it names what the tenant does not have or may not use
    │   └── NotYetSupported          part of the contract that this version refuses
    ├── Unauthenticated              no credential, or one that means nobody
    ├── Forbidden                    a known caller without the permission
    ├── NotFound                     it does not exist, or is not yours: nobody can tell which
    ├── Conflict
    │   ├── NameTaken                the name belongs to another primitive or object
    │   │   └── DuplicateToolError   a tool registry has a tool of that name
    │   └── PreconditionFailed       If-Match named another version
    ├── LimitExceeded                a rate, concurrency or size limit; carries a retry hint
    ├── PolicyDenied                 the tenant's policy does not allow this call
    ├── TemplateFailed               a template came to a limit or met a value it cannot use
    ├── CallError                    a handler of ours could not finish its call
    │   ├── HandlerFailed            it raised, took too long or answered in a wrong shape
    │   ├── OutputInvalid            its result does not match the tool's output schema
    │   ├── RecursionRefused         too many calls inside each other
    │   ├── CapabilityMissing        the client did not declare what the call has to ask of it
    │   └── ClientSilent             the client is gone, or gave no answer in time or none that fits
    ├── UpstreamError
    │   ├── EgressDenied             the address is not one the gateway may dial
    │   ├── UpstreamUnreachable      no connection, or it broke
    │   ├── UpstreamTimeout          no answer in time
    │   ├── UpstreamBusy             as many calls under way there as the tenant may have; nothing was sent
    │   ├── UpstreamSuspended        it failed several times in a row and is left alone; nothing was sent
    │   ├── UpstreamAnswerTooLarge   more bytes than a result may have
    │   ├── UpstreamAnswerBroken     an answer that is no HTTP, or lies about its encoding
    │   ├── CredentialMissing        the operation wants a credential that was never stored
    │   ├── TokenRefused             the authorization server gave no access token
    │   └── FetchFailed              a document URL answered with something else
    ├── Unavailable                  a part of ours is away; try again
    │   ├── DatabaseUnavailable
    │   ├── RedisUnavailable
    │   └── AuditUnavailable
    ├── BrokenSetting                the gateway cannot start with this configuration
    ├── EmbeddedServerFailed         PostgreSQL or Redis of ours did not come up
    └── SecretUnreadable             a stored secret that no configured key opens

Messages are for people and carry no secret and no other tenant's names. `code` is stable; `docs/errors.md`
explains each. Refusals of one kind of request are in `gateway.domain.refusals`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One place in what was sent that is wrong, and why."""

    pointer: str
    reason: str
    line: int | None = None
    column: int | None = None


class GatewayError(Exception):
    """Anything the gateway refuses or fails at, in words for the caller."""

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, *, faults: Sequence[Fault] = (), retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.faults = tuple(faults)
        self.retry_after_s = retry_after_s


class BadInput(GatewayError):
    """What was sent breaks the contract; nothing was stored or sent on."""

    code = "input.invalid"


class InvalidBody(BadInput):
    """A body that is not JSON or has not the documented form; the faults point into it."""

    code = "input.body_invalid"


class InvalidCursor(BadInput):
    """A cursor that was not issued to this caller for this list."""

    code = "input.cursor_invalid"


class InvalidDocument(BadInput):
    """An OpenAPI document that cannot be read; a fault says where."""

    code = "document.invalid"


class DocumentTooLarge(InvalidDocument):
    """A document, or a request body, beyond its limit in bytes, depth or nodes."""

    code = "document.too_large"


class ArgumentsInvalid(BadInput):
    """Arguments that break the input schema, cannot be put on the wire or are unknown; nothing was sent."""

    code = "call.arguments_invalid"


class MissingArguments(BadInput):
    """Arguments that a prompt cannot do without; the message names them all."""

    code = "call.arguments_missing"


class DefinitionInvalid(BadInput):
    """A primitive that breaks its contract; the message names the field and the faults point at each place."""

    code = "definition.invalid"


class ToolValidationError(DefinitionInvalid):
    """A tool definition that breaks the contract of tools."""

    code = "definition.tool_invalid"


class ResourceValidationError(DefinitionInvalid):
    """A resource, resource template or resource content that breaks the contract of resources."""

    code = "definition.resource_invalid"


class PromptValidationError(DefinitionInvalid):
    """A prompt definition or prompt message that breaks the contract of prompts."""

    code = "definition.prompt_invalid"


class HandlerInvalid(DefinitionInvalid):
    """A handler spec of an unknown kind or not of its kind's form."""

    code = "definition.handler_invalid"


class TemplateInvalid(BadInput):
    """A template that cannot be read; its fault has the line."""

    code = "template.invalid"


class ReferenceMissing(BadInput):
    """What was sent names what the tenant does not have or may not use; the faults point at each."""

    code = "input.reference_missing"


class NotYetSupported(BadInput):
    """A part of the contract that this version refuses rather than ignores."""

    code = "input.not_yet_supported"


class Unauthenticated(GatewayError):
    """No credential, or one that is unknown, expired or revoked."""

    code = "auth.unauthenticated"


class Forbidden(GatewayError):
    """The caller is known and lacks the scope."""

    code = "auth.forbidden"


class NotFound(GatewayError):
    """It does not exist or is not the caller's; the two look alike."""

    code = "not_found"


class Conflict(GatewayError):
    """The change contradicts what is stored."""

    code = "conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class NameConflict:
    """A wanted name and the owner that already has it, such as `source:petstore`."""

    name: str
    owner: str


class NameTaken(Conflict):
    """A wanted name is in use; the original stays as it is."""

    code = "name_taken"

    def __init__(
        self, message: str, *, conflicts: Sequence[NameConflict] = (), suggested_prefix: str | None = None
    ) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)
        self.suggested_prefix = suggested_prefix


class DuplicateToolError(NameTaken):
    """A tool of this name is registered already, or is the tenant's own; it stays as it is."""

    code = "name_taken.tool"

    def __init__(self, tool_name: str, message: str | None = None, *, conflicts: Sequence[NameConflict] = ()) -> None:
        super().__init__(message or f"a tool named '{tool_name}' is registered already", conflicts=conflicts)
        self.tool_name = tool_name


class PreconditionFailed(Conflict):
    """If-Match named a version that is no longer the current one."""

    code = "precondition_failed"


class LimitExceeded(GatewayError):
    """A limit of the tenant or key; `retry_after_s` says when to try again."""

    code = "limit.exceeded"


class PolicyDenied(GatewayError):
    """The tenant's policy does not allow a call of this safety level."""

    code = "policy.denied"


class CallError(GatewayError):
    """A handler could not finish its call."""

    code = "call.failed"


class HandlerFailed(CallError):
    """A handler raised, took too long or answered in a shape that the protocol does not have."""

    code = "call.handler_failed"


class OutputInvalid(CallError):
    """A tool's result does not match the output schema that it declares; the faults point into the result."""

    code = "call.output_invalid"


class RecursionRefused(CallError):
    """A call inside a call inside a call …: deeper than any sane one."""

    code = "call.recursion"


class CapabilityMissing(CallError):
    """The client did not declare what the call has to ask of it; `capability` is the protocol's name for it."""

    code = "call.capability_missing"

    def __init__(self, message: str, *, capability: str) -> None:
        super().__init__(message)
        self.capability = capability


class ClientSilent(CallError):
    """The client is gone, gave no answer in time, or one that does not match its question; see its faults."""

    code = "call.client_silent"


class TemplateFailed(GatewayError):
    """A template came to one of its limits, or met a value that it cannot use."""

    code = "call.template_failed"


class UpstreamError(GatewayError):
    """The upstream could not be asked, or did not give an answer we can pass on."""

    code = "upstream.failed"


class EgressDenied(UpstreamError):
    """The upstream resolves to an address the gateway may not dial."""

    code = "upstream.egress_denied"


class UpstreamUnreachable(UpstreamError):
    """No connection could be made, or it broke before the answer was complete."""

    code = "upstream.unreachable"


class UpstreamTimeout(UpstreamError):
    """The upstream did not answer in time."""

    code = "upstream.timeout"


class UpstreamBusy(UpstreamError):
    """The tenant has as many calls at this upstream, or connections to all, as it may have; nothing was sent."""

    code = "upstream.busy"


class UpstreamSuspended(UpstreamError):
    """The upstream failed several times in a row and is left alone for a while; nothing was sent."""

    code = "upstream.suspended"


class UpstreamAnswerTooLarge(UpstreamError):
    """The answer has more bytes than a result may have, as sent or inflated."""

    code = "upstream.answer_too_large"


class UpstreamAnswerBroken(UpstreamError):
    """The answer is not valid HTTP or its body is not in the declared encoding."""

    code = "upstream.answer_broken"


class CredentialMissing(UpstreamError):
    """The operation needs a credential that the source has not; nothing was sent."""

    code = "upstream.credential_missing"


class TokenRefused(UpstreamError):
    """The operation needs an access token, and the authorization server gave none; nothing was sent."""

    code = "upstream.token_refused"


class FetchFailed(UpstreamError):
    """A document URL answered, but not with a document."""

    code = "document.fetch_failed"


class Unavailable(GatewayError):
    """A part of the gateway is away; the same request may go through later."""

    code = "unavailable"


class DatabaseUnavailable(Unavailable):
    """PostgreSQL does not answer."""

    code = "unavailable.database"


class RedisUnavailable(Unavailable):
    """Redis does not answer."""

    code = "unavailable.redis"


class AuditUnavailable(Unavailable):
    """The audit entry could not be committed, so there is no answer."""

    code = "unavailable.audit"


class BrokenSetting(GatewayError):
    """A setting without which, or with which, the gateway does not start."""

    code = "setting.broken"


class EmbeddedServerFailed(GatewayError):
    """The embedded PostgreSQL or Redis did not start or was found in use."""

    code = "embedded.failed"


class SecretUnreadable(GatewayError):
    """A stored secret that none of the configured secret keys opens."""

    code = "secret.unreadable"
