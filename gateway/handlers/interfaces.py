"""What a handler is to the stations: prepare first, run later, with everything that judges a call in between."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from gateway.domain.http.requests import Credential, NamedCredential, UpstreamAnswer, UpstreamRequest
from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.queries import Queried
from gateway.domain.results import Completions, Contents, Messages, Result
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tools import Tool

QuestionKind = Literal["elicitation", "sampling", "roots"]
LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A call, final but not yet made: what will be sent, its digest, and a summary that a person can read.

    `request` is there when the call is exactly one upstream request; any other handler finds its input in `arguments`.
    """

    digest: bytes
    named: str = ""
    request: UpstreamRequest | None = None
    arguments: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])

    @property
    def summary(self) -> str:
        """Its name, or else its request on one line."""
        return self.named or ("" if self.request is None else f"{self.request.method} {self.request.url}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something only the client can answer: the parameters of `elicitation/create`, `sampling/createMessage` or
    `roots/list` as the protocol writes them (an elicitation with `mode: "url"` opens a page)."""

    kind: QuestionKind
    params: Mapping[str, object]


class InputRequired(Exception):  # not an error: the call goes on when the client comes back with answers
    """The call cannot go on before the client has answered; `state` comes back with the answers, unseen by the client.

    Raised by peers of 2026-07-28 (`InputRequiredResult`); it leaves the stations as it is.
    """

    def __init__(self, questions: Mapping[str, Question], state: Mapping[str, object]) -> None:
        super().__init__("input required")
        self.questions = questions
        self.state = state


class Peer(Protocol):
    """What the client of this call can be told and asked, in whatever form its era has."""

    def can(self, kind: str) -> bool:
        """Whether the client declared this: `elicitation`, `elicitation.url`, `sampling`, `roots`."""
        ...

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell how far the call is; nothing happens when the client gave no token."""
        ...

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Send a log message, if the client wants that level."""
        ...

    async def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Mapping[str, Any]]:
        """The client's answers by key, each the result object of its question.

        A key names one question within the call; where the call is run again from its start, the same key gives the
        answer that is already there.

        Raises:
            InputRequired: the answers come with a later request; the handler lets this through.
            CapabilityMissing: the client did not declare what the question needs.
            ClientSilent: no answer in time, one that does not match the form, or the client is gone.
        """
        ...

    def recall(self, key: str) -> Any:
        """What an earlier round of this same call remembered under the key; None when there is nothing."""
        ...

    def remember(self, key: str, value: object) -> None:
        """Keep a JSON value for later rounds of this same call; small, because the client carries it, sealed."""
        ...

    async def end_stream(self) -> None:
        """End the stream that this call's messages ride on; the client comes back for the rest where it can."""
        ...


class Call(Protocol):
    """One running call, as its handler sees it."""

    @property
    def principal(self) -> Principal:
        """Who calls."""
        ...

    @property
    def correlation_id(self) -> str:
        """What to quote in logs."""
        ...

    @property
    def peer(self) -> Peer:
        """The client."""
        ...

    def within(self, seconds: float) -> AbstractContextManager[None, None]:
        """Bound what a block may take; the time that the client takes to answer is not counted.

        Raises:
            HandlerFailed: at the end of the block, which was cancelled because it took longer.
        """
        ...

    async def call_tool(self, name: str, arguments: Mapping[str, object], *, key: str | None = None) -> dict[str, Any]:
        """Call another tool of the same registry through all its gates: the result object as the protocol has it.

        Where the call is run again from its start after a question, `key` says which of its calls this is; without one
        they are counted.

        Raises:
            NotFound: there is none of that name.
            RecursionRefused: too many calls inside each other.
            GatewayError: it was refused.
        """
        ...

    def queried(self) -> Sequence[Queried]:
        """What the query tools may speak of to this principal."""
        ...

    async def call_operation(self, tool: Tool, arguments: Mapping[str, object]) -> bytes:
        """Call one of the operations in `queried` through all gates of its tool, listed or not; see `call_tool`.

        What comes back are the members of its result object as JSON, as they were written.
        """
        ...

    async def read_resource(self, uri: str) -> Contents:
        """Read a resource of the same registry through all its gates.

        Raises:
            NotFound: there is none, or not for this principal.
            RecursionRefused, GatewayError: as above.
        """
        ...


Answer_co = TypeVar("Answer_co", covariant=True)


class Handler(Protocol[Answer_co]):
    """The object that runs a primitive."""

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """The arguments as they are meant, before they are validated: what counts as absent is left out."""
        ...

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """The call that these valid arguments make.

        Raises:
            ArgumentsInvalid: they cannot be put on the wire.
        """
        ...

    async def preview(self, prepared: Prepared) -> str:
        """Preview for a confirmation: every request that will be made, without credentials.

        Raises:
            CredentialMissing: what it needs is not stored, so nothing would be sent.
        """
        ...

    async def run(self, prepared: Prepared, call: Call, /) -> Answer_co:
        """Make the call.

        Raises:
            UpstreamError: there is no answer to pass on.
            InputRequired: the client has to answer first.
        """
        ...


ToolHandler = Handler[UpstreamAnswer | Result]
ResourceHandler = Handler[Contents]
PromptHandler = Handler[Messages]


class Completer(Protocol):
    """What suggests values for an argument of a prompt or a variable of a template."""

    async def complete(self, argument: str, value: str, chosen: Mapping[str, str], call: Call) -> Completions:
        """Values that begin with what was typed; `chosen` are the arguments already filled in."""
        ...


class SecretReader(Protocol):
    """Where stored credentials are read."""

    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        """The source's credentials by security scheme."""
        ...

    async def named(self, tenant: TenantId, name: str) -> NamedCredential | None:
        """The tenant's credential of this name; None when there is none."""
        ...
