"""Errors of calls, large results, idempotency, sign-in, approvals, sources and upstreams; see `gateway.errors`.

BadInput
├── MissingArguments        a prompt without its required arguments
├── SecretNotKept           a change that omits a secret and names another receiver of it
├── IdempotencyKeyReused    an Idempotency-Key that belongs to another request
├── ClientRefused           an application that the authorization server does not know, or cannot serve
└── SignInExpired           a sign-in that this browser did not begin, or that has ended or was used
CallError
└── ResultBusy              it ran, but its large result is not returned: too many are in work
Conflict
├── RequestInProgress       the request with this Idempotency-Key is running
├── AnswerNotKept           the request was executed, and its response is not stored
├── RemovalsRefused         a change that would remove tools, without permission to do so
└── SourceShrunk            a document with less than half of the tools of its source's active version
Forbidden
├── ScopeMissing            the access token is valid, but no rule of its issuer admits the person here
└── SignInRefused           a person who has signed in at the provider may not use the tenant
Unauthenticated
└── ProofRefused            the proof of a bound access token is missing, used, or of another request
CallError
├── OutputInvalid           the result of a handler does not match the tool's output schema
└── RecursionRefused        calls nested too deep, or too many calls inside one
PolicyDenied
├── ApprovalRequired        another person has to approve the call, or has denied it
├── CallBlocked             a guardrail does not allow the arguments; nothing was sent
└── ResultBlocked           a guardrail withholds the result; the call has run
UpstreamError
├── UpstreamSuspended       the circuit breaker is open after several consecutive failures; nothing was sent
├── AccountRequired         the caller has to connect an account at the upstream first; the link is in the error
├── SecretUnavailable       the external store does not have the secret, refuses it, or does not respond
├── SignInFailed            the provider did not sign the person in, or its response is not valid
└── LiveSourceFailed        a live source refused the request, or sent something invalid, too large or too late
    └── LiveSourceDetached  the live source is not attached, or its attachment ended before the result
"""

from collections.abc import Mapping, Sequence

from gateway.errors import (
    BadInput,
    CallError,
    Conflict,
    Forbidden,
    InvalidBody,
    PolicyDenied,
    Unauthenticated,
    UpstreamError,
)


class MissingArguments(BadInput):
    """Required arguments of a prompt are missing; the message names all of them."""

    code = "call.arguments_missing"


class OutputInvalid(CallError):
    """A tool's result does not match the output schema that it declares; the faults point into the result."""

    code = "call.output_invalid"


class RecursionRefused(CallError):
    """Calls nested too deep, or too many calls inside one."""

    code = "call.recursion"


class IdempotencyKeyReused(BadInput):
    """The Idempotency-Key was already used by the same principal for another request."""

    code = "idempotency.key_reused"


class RequestInProgress(Conflict):
    """The first request with the same Idempotency-Key has no response yet."""

    code = "idempotency.in_progress"


class AnswerNotKept(Conflict):
    """The request was executed, but its response was too large to store, or was lost with its replica."""

    code = "idempotency.answer_not_kept"


class RemovalsRefused(Conflict):
    """The change of a source would remove tools, and was sent without `allow_removals`."""

    code = "source.removals_refused"


class SourceShrunk(Conflict):
    """The document has less than half of the tools of the active version, and was sent without `allow_removals`."""

    code = "source.shrunk"


class ApprovalRequired(PolicyDenied):
    """Another person has to approve the call, or has denied it; `approval` has its id, state, expiry and page."""

    code = "approval.required"

    def __init__(self, message: str, *, approval: Mapping[str, str]) -> None:
        super().__init__(message)
        self.approval = approval


class CallBlocked(PolicyDenied):
    """A guardrail of the tenant does not allow the arguments of the call; nothing was sent."""

    code = "policy.call_blocked"


class ResultBusy(CallError):
    """A call has run, but too many large results of its tenant, or of all, are in work; has a retry hint."""

    code = "call.result_busy"


class ResultBlocked(PolicyDenied):
    """A guardrail of the tenant withholds the result; the call itself has run."""

    code = "policy.result_blocked"


class ClientRefused(BadInput):
    """The tenant's authorization server does not know the application, or cannot use its metadata."""

    code = "sign_in.client_refused"


class SignInExpired(BadInput):
    """The sign-in was started in another browser, is older than ten minutes, or was already used."""

    code = "sign_in.expired"


class SignInRefused(Forbidden):
    """The person has signed in at the provider, but is denied, or no rule of the issuer admits the person."""

    code = "sign_in.refused"


class UpstreamSuspended(UpstreamError):
    """The upstream failed several times in a row and its circuit breaker is open for a while; nothing was sent."""

    code = "upstream.suspended"


class AccountRequired(UpstreamError):
    """The call needs an account of its caller at the upstream, which is not connected, or whose token was refused.

    `url` is the page on which the caller connects it; it names no user, and is not a credential. `is_sent` is True if
    the upstream refused a request with the account's token.
    """

    code = "upstream.account_required"

    def __init__(self, message: str, *, credential: str, url: str, is_sent: bool = False) -> None:
        super().__init__(message)
        self.credential = credential
        self.url = url
        self.is_sent = is_sent


class SignInFailed(UpstreamError):
    """The provider did not sign the person in, or its response is not valid."""

    code = "sign_in.failed"


class LiveSourceFailed(UpstreamError):
    """A live source refused the request, or its result is invalid, too large or too late."""

    code = "live_source.failed"


class LiveSourceDetached(LiveSourceFailed):
    """The live source is not attached, or its attachment ended before the result."""

    code = "live_source.detached"


class ScopeMissing(Forbidden):
    """The access token is valid, but does not permit this; `scopes` would permit it."""

    code = "auth.scope_missing"

    def __init__(self, message: str, *, scopes: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.scopes = scopes


class ProofRefused(Unauthenticated):
    """The access token is bound to a key of the client, and the DPoP proof of the request is missing or not valid."""

    code = "auth.proof_refused"


class SecretUnavailable(UpstreamError):
    """The external store to which a credential refers did not return the secret; nothing was sent."""

    code = "upstream.secret_unavailable"


class SecretNotKept(InvalidBody):
    """A change that omits a secret and names another receiver of it; the faults name the members."""

    code = "input.secret_not_kept"
