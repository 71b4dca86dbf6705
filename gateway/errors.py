"""The errors that the gateway raises on purpose, as one tree.

    GatewayError
    ├── BadInput                     the request violates the contract; nothing was stored
    │   ├── InvalidBody              a JSON body does not have the documented form
    │   ├── InvalidCursor            a cursor that was not issued to this caller
    │   ├── InvalidDocument          an OpenAPI document that cannot be read
    │   │   └── DocumentTooLarge     a document or body beyond its limit
    │   ├── ArgumentsInvalid         arguments that violate the input schema, or that the prompt does not have
    │   ├── DefinitionInvalid        a primitive of the tenant's own that violates its contract
    │   │   ├── ToolValidationError
    │   │   ├── ResourceValidationError
    │   │   ├── PromptValidationError
    │   │   └── HandlerInvalid       a handler spec that does not have its documented form
    │   ├── TemplateInvalid          a template that cannot be parsed; the fault has the line
    │   ├── ReferenceMissing         the request names an object that the tenant does not have or may not use
    │   └── NotYetSupported          part of the contract that this version refuses
    ├── Unauthenticated              no credential, or one that is unknown, expired or revoked
    ├── Forbidden                    a known caller without the permission
    ├── NotFound                     it does not exist, or belongs to another tenant
    ├── Conflict
    │   ├── NameTaken                the name belongs to another primitive or object
    │   │   └── DuplicateToolError   a tool registry has a tool of that name
    │   └── PreconditionFailed       If-Match named another version
    ├── LimitExceeded                a rate, concurrency or count limit; may have a retry hint
    ├── PolicyDenied                 the tenant's policy does not allow this call
    ├── TemplateFailed               a template reached a limit or read a value that it cannot use
    ├── CallError                    a handler of the gateway could not finish its call
    │   ├── HandlerFailed            it raised, took too long or returned an invalid result
    │   ├── CapabilityMissing        the client did not declare a capability that the call needs
    │   └── ClientSilent             the client has disconnected, did not respond in time, or sent an invalid response
    ├── UpstreamError
    │   ├── EgressDenied             the gateway may not connect to this address
    │   ├── UpstreamUnreachable      no connection, or it was lost
    │   ├── UpstreamTimeout          no response in time
    │   ├── UpstreamBusy             the tenant's limit of calls or connections there is reached; nothing was sent
    │   ├── UpstreamAnswerTooLarge   the response is larger than a result may be
    │   ├── UpstreamAnswerBroken     a response that is not valid HTTP, or not in its declared encoding
    │   ├── CredentialMissing        the call needs a credential that is not stored
    │   ├── TokenRefused             the authorization server issued no access token
    │   └── FetchFailed              a document URL did not return a document
    ├── Unavailable                  a part of the gateway is unavailable; retry later
    │   ├── DatabaseUnavailable
    │   ├── RedisUnavailable
    │   └── AuditUnavailable
    ├── BrokenSetting                the gateway cannot start with this configuration
    ├── EmbeddedServerFailed         the embedded PostgreSQL or Redis did not start
    └── SecretUnreadable             a stored secret that no configured key decrypts

Messages are for people; messages to a tenant contain no secrets and no names of other tenants. `code` is stable;
`docs/errors.md` explains each code. Errors that only one kind of request raises are in `gateway.domain.refusals`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple


class DecidingRule(NamedTuple):
    """The rule that refused a request, for the audit trail only; `docs/audit.md` lists the kinds."""

    kind: str
    name: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of a request: a JSON Pointer to the wrong value, the reason, and its line and column if known."""

    pointer: str
    reason: str
    line: int | None = None
    column: int | None = None


class GatewayError(Exception):
    """A refusal or failure, with a message for the caller."""

    code: ClassVar[str] = "internal"

    def __init__(
        self,
        message: str,
        *,
        faults: Sequence[Fault] = (),
        retry_after_s: float | None = None,
        rule: DecidingRule | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.faults = tuple(faults)
        self.retry_after_s = retry_after_s
        self.rule = rule
        """The rule that refused the request; None for a failure."""
        self.is_noted = False  # as a refusal, in the audit trail


class BadInput(GatewayError):
    """The request violates the contract; nothing was stored or forwarded."""

    code = "input.invalid"


class InvalidBody(BadInput):
    """A body that is not JSON or does not have the documented form; the faults point into it."""

    code = "input.body_invalid"


class InvalidCursor(BadInput):
    """A cursor that was not issued to this caller for this list."""

    code = "input.cursor_invalid"


class InvalidDocument(BadInput):
    """An OpenAPI document that cannot be read; a fault names the position."""

    code = "document.invalid"


class DocumentTooLarge(InvalidDocument):
    """A document, or a request body, beyond its limit in bytes, depth or nodes."""

    code = "document.too_large"


class ArgumentsInvalid(BadInput):
    """Arguments that violate the input schema, cannot be serialized or are unknown; nothing was sent."""

    code = "call.arguments_invalid"


class DefinitionInvalid(BadInput):
    """A primitive that violates its contract; the message names the field and the faults point at each position."""

    code = "definition.invalid"


class ToolValidationError(DefinitionInvalid):
    """A tool definition that violates the contract of tools."""

    code = "definition.tool_invalid"


class ResourceValidationError(DefinitionInvalid):
    """A resource, resource template or resource content that violates the contract of resources."""

    code = "definition.resource_invalid"


class PromptValidationError(DefinitionInvalid):
    """A prompt definition or prompt message that violates the contract of prompts."""

    code = "definition.prompt_invalid"


class HandlerInvalid(DefinitionInvalid):
    """A handler spec of an unknown kind, or one that does not have the form of its kind."""

    code = "definition.handler_invalid"


class TemplateInvalid(BadInput):
    """A template that cannot be parsed; its fault has the line."""

    code = "template.invalid"


class ReferenceMissing(BadInput):
    """The request names objects that the tenant does not have or may not use; the faults point at each one."""

    code = "input.reference_missing"


class NotYetSupported(BadInput):
    """A part of the contract that this version refuses rather than ignores."""

    code = "input.not_yet_supported"


class Unauthenticated(GatewayError):
    """No credential, or one that is unknown, expired or revoked."""

    code = "auth.unauthenticated"


class Forbidden(GatewayError):
    """The caller is authenticated but lacks the scope."""

    code = "auth.forbidden"


class NotFound(GatewayError):
    """The object does not exist or belongs to another tenant; the response is the same for both."""

    code = "not_found"


class Conflict(GatewayError):
    """The change contradicts the stored state."""

    code = "conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class NameConflict:
    """A requested name and the owner that already has it, such as `source:petstore`."""

    name: str
    owner: str


class NameTaken(Conflict):
    """A requested name is in use; the existing object is unchanged."""

    code = "name_taken"

    def __init__(
        self, message: str, *, conflicts: Sequence[NameConflict] = (), suggested_prefix: str | None = None
    ) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)
        self.suggested_prefix = suggested_prefix


class DuplicateToolError(NameTaken):
    """A tool of this name is already registered, or the tenant has one of its own; the existing tool is unchanged."""

    code = "name_taken.tool"

    def __init__(self, tool_name: str, message: str | None = None, *, conflicts: Sequence[NameConflict] = ()) -> None:
        super().__init__(message or f"a tool named '{tool_name}' is registered already", conflicts=conflicts)
        self.tool_name = tool_name


class PreconditionFailed(Conflict):
    """If-Match named a version that is no longer the current one."""

    code = "precondition_failed"


class LimitExceeded(GatewayError):
    """A limit is exceeded. `retry_after_s` is the time until a retry can succeed; None for stored objects."""

    code = "limit.exceeded"

    def __init__(self, message: str, *, limit: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message, retry_after_s=retry_after_s, rule=DecidingRule("limit", limit))


class PolicyDenied(GatewayError):
    """The tenant's policy does not allow the call, by its level or by a rule."""

    code = "policy.denied"


class CallError(GatewayError):
    """A handler could not finish its call."""

    code = "call.failed"


class HandlerFailed(CallError):
    """A handler raised, took too long or returned a result that the protocol does not allow."""

    code = "call.handler_failed"


class CapabilityMissing(CallError):
    """The client did not declare a capability that the call needs; `capability` is its name in the protocol."""

    code = "call.capability_missing"

    def __init__(self, message: str, *, capability: str) -> None:
        super().__init__(message)
        self.capability = capability


class ClientSilent(CallError):
    """The client has disconnected, did not respond in time, or sent an invalid response; see `faults`."""

    code = "call.client_silent"


class TemplateFailed(GatewayError):
    """A template reached one of its limits, or read a value that it cannot use."""

    code = "call.template_failed"


class UpstreamError(GatewayError):
    """The request could not be sent to the upstream, or its response cannot be used."""

    code = "upstream.failed"


class EgressDenied(UpstreamError):
    """The upstream resolves to an address that the gateway may not connect to."""

    code = "upstream.egress_denied"


class UpstreamUnreachable(UpstreamError):
    """No connection could be opened, or it was lost before the response was complete."""

    code = "upstream.unreachable"


class UpstreamTimeout(UpstreamError):
    """The upstream did not respond in time."""

    code = "upstream.timeout"


class UpstreamBusy(UpstreamError):
    """The tenant reached its limit of calls to this upstream, or of connections to all upstreams; nothing was sent."""

    code = "upstream.busy"


class UpstreamAnswerTooLarge(UpstreamError):
    """The response is larger than a result may be, before or after decompression."""

    code = "upstream.answer_too_large"


class UpstreamAnswerBroken(UpstreamError):
    """The response is not valid HTTP, or its body is not in the declared encoding."""

    code = "upstream.answer_broken"


class CredentialMissing(UpstreamError):
    """The call needs a credential that is not stored, incomplete, or not stored for this origin; nothing was sent."""

    code = "upstream.credential_missing"


class TokenRefused(UpstreamError):
    """The operation needs an access token, and the authorization server issued none; the operation was not sent."""

    code = "upstream.token_refused"
    error: str | None = None  # the registered error code of the response (RFC 6749 section 5.2)


class FetchFailed(UpstreamError):
    """A document URL did not return a document."""

    code = "document.fetch_failed"


class Unavailable(GatewayError):
    """A part of the gateway is unavailable; retry later. `cause` is for the operator: it may quote another server."""

    code = "unavailable"

    def __init__(self, message: str, *, retry_after_s: float | None = None, cause: str = "") -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.cause = cause or message


class DatabaseUnavailable(Unavailable):
    """PostgreSQL does not respond or cannot be used."""

    code = "unavailable.database"


class RedisUnavailable(Unavailable):
    """Redis does not respond or cannot be used."""

    code = "unavailable.redis"


class AuditUnavailable(Unavailable):
    """The audit entry could not be committed, so the result is withheld."""

    code = "unavailable.audit"


class BrokenSetting(GatewayError):
    """A missing or invalid setting; the gateway does not start."""

    code = "setting.broken"


class EmbeddedServerFailed(GatewayError):
    """The embedded PostgreSQL or Redis did not start, or another process uses its data directory."""

    code = "embedded.failed"


class SecretUnreadable(GatewayError):
    """A stored secret that none of the configured secret keys decrypts."""

    code = "secret.unreadable"
