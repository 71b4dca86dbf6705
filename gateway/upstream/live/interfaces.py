"""Interfaces of live sources: a connector opens an attachment, which discovers and runs the primitives of a source.

Requests and results use the format of MCP 2025-11-25 for every kind of source. Messages of a source are untrusted:
connectors limit their size and time, and the catalog validates each definition.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal, Protocol

from gateway.domain.live_sources import Discovery, LiveSource
from gateway.domain.sessions import SessionOwner
from gateway.domain.tenancy.principals import ToolCaller

LiveMethod = Literal[
    "tools/call",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/get",
    "completion/complete",
]


REQUESTED: Final = frozenset({"elicitation", "elicitation.url", "sampling", "roots"})
"""Client capabilities that let a source send requests to the client."""
CAPABILITIES: Final = (*sorted(REQUESTED), "ui")
"""Client capabilities, in the notation of `LiveClient.can`; `ui` are pages (MCP Apps)."""

NO_COMPLETIONS: Final[Mapping[str, Any]] = {"completion": {"values": []}}
"""The result of a source that offers no completions."""


class LiveClient(Protocol):
    """The client of one request to a live source; receives messages during the request."""

    @property
    def caller(self) -> ToolCaller | None:
        """The caller, for per-caller credentials; None for requests of the gateway itself or of another replica."""
        ...

    @property
    def owner(self) -> SessionOwner | None:
        """The owner of the session in which the request runs; None for requests of the gateway itself."""
        ...

    @property
    def mirrored(self) -> object:
        """The input schema of the called tool if it marks arguments for headers (`x-mcp-header`); otherwise None."""
        ...

    def can(self, kind: str) -> bool:
        """True if the client declared the capability, one of `CAPABILITIES`."""
        ...

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Forward a progress notification."""
        ...

    async def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Forward a log message."""
        ...

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        """Forward `elicitation/create`, `sampling/createMessage` or `roots/list`; return the result object.

        Raises:
            CapabilityMissing: the client did not declare the capability.
            ClientSilent: the client sent no valid response in time.
        """
        ...


class LiveListener(Protocol):
    """The receiver of change notifications of an attachment, with non-blocking methods."""

    def changed(self) -> None:
        """Handle a change of the source's list of primitives."""
        ...

    def updated(self, uri: str) -> None:
        """Handle a change of the resource at this URI."""
        ...

    def noticed(self, notice: str) -> None:
        """Show a fault of the source to the tenant's admins; equal texts are shown once."""
        ...


class LiveAttachment(Protocol):
    """An open attachment to one live source."""

    @property
    def is_local(self) -> bool:
        """True if sessions of callers exist only at one replica, so that their requests go to the holder."""
        ...

    def retire(self) -> None:
        """Note that the source was changed or removed: closing also ends the sessions of its callers."""
        ...

    async def discover(self) -> Discovery:
        """List the source's primitives.

        Raises:
            LiveSourceFailed: the source did not return its primitives.
        """
        ...

    async def request(self, method: LiveMethod, params: Mapping[str, object], client: LiveClient) -> Mapping[str, Any]:
        """Run one request and return the protocol's result object. A cancellation is forwarded to the source.

        Raises:
            LiveSourceDetached: the attachment ended before the result.
            LiveSourceFailed: the source refused the request, or its result is invalid or too large.
            NotFound: the source has no such primitive.
        """
        ...

    async def wait_closed(self) -> str:
        """Wait until the remote side ends the attachment; return the reason."""
        ...


class LiveConnector(Protocol):
    """Attaches to live sources of one kind."""

    def attach(self, source: LiveSource, listener: LiveListener) -> AbstractAsyncContextManager[LiveAttachment]:
        """Connect to the source; the attachment is closed when the block ends.

        Raises:
            LiveSourceFailed: the connection failed; the message states the reason for the tenant's admin.
            EgressDenied: the gateway may not connect to this address.
        """
        ...
