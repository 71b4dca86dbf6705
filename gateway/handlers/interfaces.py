"""Interfaces of handlers and calls: the pipeline prepares a call, checks it, and then runs it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import msgspec

from gateway.definitions.json_schema.validator import DeferredCheck
from gateway.domain.http.requests import Credential, NamedCredential, UpstreamRequest, UpstreamResponse
from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.queries import Queried
from gateway.domain.results import Completions, Contents, Messages, Result
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tools import Tool
from gateway.upstream.body_room import BodyHolder

InputRequestKind = Literal["elicitation", "sampling", "roots"]
LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is ready to be made: its content, its digest, and a readable summary.

    `request` is set if the call is exactly one upstream request; otherwise `arguments` contains the input.
    """

    digest: bytes
    named: str = ""
    request: UpstreamRequest | None = None
    arguments: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])

    @property
    def summary(self) -> str:
        """The call's name, or its request on one line."""
        return self.named or ("" if self.request is None else f"{self.request.method} {self.request.url}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequest:
    """A server-to-client request, with the protocol's parameters.

    The parameters are those of `elicitation/create`, `sampling/createMessage` or `roots/list`. An elicitation with
    `mode: "url"` opens a page.
    """

    kind: InputRequestKind
    params: Mapping[str, object]


class UncheckedCall(Exception):  # not an error: the pipeline checks the arguments and resumes the call
    """The arguments that a handler has merged need a check that it cannot make; `resume` returns the prepared call."""

    def __init__(self, check: DeferredCheck, resume: Callable[[], Prepared]) -> None:
        super().__init__("unchecked arguments")
        self.check = check
        self.resume = resume


class InputRequired(Exception):  # not an error: the call continues with the client's responses
    """The call needs responses from the client first; the client returns them with the sealed `state`.

    Raised by peers of 2026-07-28 (`InputRequiredResult`); it passes through the call pipeline unchanged.
    """

    def __init__(self, input_requests: Mapping[str, InputRequest], state: Mapping[str, object]) -> None:
        super().__init__("input required")
        self.input_requests = input_requests
        self.state = state


class Peer(Protocol):
    """The client of a call, as its handler sees it: receives notifications and requests in any protocol revision."""

    @property
    def session(self) -> str:
        """The id of the client's MCP session; empty in 2026-07-28, which has none."""
        ...

    @property
    def approval_timeout_s(self) -> float:
        """Seconds that a request may wait for a person who is not its client; 0 if it may not wait."""
        ...

    def can(self, kind: str) -> bool:
        """True if the client declared this capability: `elicitation`, `elicitation.url`, `sampling`, `roots`;
        or that it shows pages (MCP Apps): `ui`.
        """
        ...

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send a progress notification, if the client sent a token; a value that does not increase is dropped."""
        ...

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Send a log message, if the client requested that log level."""
        ...

    async def ask(self, input_requests: Mapping[str, InputRequest]) -> Mapping[str, Mapping[str, Any]]:
        """Send requests to the client; return the result object of each response, by the key of its request.

        A key identifies one request within the call. When the call is restarted, the same key returns the stored
        response.

        Raises:
            InputRequired: the responses come with a later request; the handler must not catch this.
            CapabilityMissing: the client did not declare the capability that a request needs.
            ClientSilent: no valid response arrived in time, or the session has ended.
            HandlerFailed: the schema of a form is invalid.
        """
        ...

    def recall(self, key: str) -> Any:
        """Return the value that an earlier round of this call stored under the key; None if there is none."""
        ...

    def remember(self, key: str, value: object) -> None:
        """Store a JSON value for later rounds of this call. It must be small: the client may store it, sealed."""
        ...

    async def note_intent(self) -> None:
        """Record that the call may have effects from now on; called before the intent is recorded in the audit trail.

        Raises:
            Conflict: the call is a task that was cancelled, or that another replica runs.
        """
        ...

    async def note_wait(self, approval: Mapping[str, str] | None) -> None:
        """Record that the call waits for this approval (id, state, expiry and page), or no longer waits for one."""
        ...

    async def end_stream(self) -> None:
        """End the stream that carries this call's messages; the client may resume it. Does nothing in 2026-07-28."""
        ...


class Call(BodyHolder, Protocol):
    """The interface of a running call for its handler."""

    @property
    def principal(self) -> Principal:
        """The principal of the call."""
        ...

    @property
    def action(self) -> tuple[str, str]:
        """The kind of the call (`call`, `read`, `get`, `complete`), and the name or URI of its primitive."""
        ...

    @property
    def correlation_id(self) -> str:
        """The correlation id for logs."""
        ...

    @property
    def peer(self) -> Peer:
        """The client."""
        ...

    @property
    def summary_threshold(self) -> int:
        """Size in bytes above which parts of the result are summarised for the client; 0 disables summaries."""
        ...

    @property
    def result_owner(self) -> str:
        """The owner of the results that the call stores and reads: subject, profile and access rules."""
        ...

    def within(self, seconds: float) -> AbstractContextManager[None, None]:
        """Limit the duration of a block; the time spent waiting for the client's response does not count.

        Raises:
            HandlerFailed: the block exceeded the limit and was cancelled; raised when the block ends.
        """
        ...

    async def call_tool(self, name: str, arguments: Mapping[str, object], *, key: str | None = None) -> dict[str, Any]:
        """Call another tool of the same registry through the call pipeline; return the protocol's result object.

        When the call is restarted after a request to the client, `key` identifies the inner call; without a key, inner
        calls are numbered.

        Raises:
            NotFound: there is no tool with this name.
            RecursionRefused: too many nested calls.
            GatewayError: the call was refused.
        """
        ...

    def queried(self) -> Sequence[Queried]:
        """Return the sources and operations that the query tools may show to this principal."""
        ...

    async def call_operation(self, tool: Tool, arguments: Mapping[str, object]) -> bytes:
        """Call an operation from `queried` through the call pipeline, even if clients cannot list it; see `call_tool`.

        Returns the members of the result object as JSON, unchanged.
        """
        ...

    async def read_resource(self, uri: str) -> Contents:
        """Read a resource of the same registry through the call pipeline.

        Raises:
            NotFound: there is no such resource, or not for this principal.
            RecursionRefused: too many nested calls.
            GatewayError: the request was refused or failed.
        """
        ...


Result_co = TypeVar("Result_co", covariant=True)


class Handler(Protocol[Result_co]):
    """The object that runs a primitive."""

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Return the arguments for validation, without those that are treated as absent."""
        ...

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """Return the call for these valid arguments.

        Raises:
            ArgumentsInvalid, EgressDenied, HandlerFailed, TemplateFailed: no call can be built from these
                arguments.
            UncheckedCall: the merged arguments have to be checked first.
        """
        ...

    async def preview(self, prepared: Prepared) -> str:
        """Show the call for a confirmation: the requests that are known in advance, without credentials.

        Raises:
            CredentialMissing: a needed credential is not stored.
            HandlerFailed: the handler is not available.
        """
        ...

    async def run(self, prepared: Prepared, call: Call, /) -> Result_co:
        """Run the call.

        Raises:
            CallError, NotFound, TemplateFailed, UpstreamError: the call failed.
            InputRequired: the call needs a response from the client first.
        """
        ...


@runtime_checkable
class NeedsCredentials(Protocol):
    """A handler whose calls need stored credentials."""

    async def require_credentials(self) -> None:
        """Check that the credentials which every call needs are stored.

        Raises:
            CredentialMissing: one is missing, or is not stored for the origin of its request.
        """
        ...


ToolHandler = Handler[UpstreamResponse | Result]
ResourceHandler = Handler[Contents]
PromptHandler = Handler[Messages]


class Completer(Protocol):
    """Suggests values for an argument of a prompt or a variable of a template."""

    async def complete(self, argument: str, value: str, chosen: Mapping[str, str], call: Call) -> Completions:
        """Return suggestions for the typed text `value`; `chosen` are the arguments already filled in."""
        ...


class InputSchemas(Protocol):
    """The full input schemas of imported tools that list shortened ones."""

    async def of(self, tenant: TenantId, tool: Tool) -> bytes | None:
        """Return the full input schema; None if it is no longer stored."""
        ...


class SecretReader(Protocol):
    """Reads stored credentials."""

    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        """Return the source's credentials by security scheme."""
        ...

    async def named(self, tenant: TenantId, name: str) -> NamedCredential | None:
        """Return the tenant's credential of this name; None if there is none."""
        ...
