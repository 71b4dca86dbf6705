"""Interfaces of live sources: a connector attaches to one, and an attachment discovers and runs its primitives.

Requests and results are those of MCP 2025-11-25, for each kind of source. What a source sends is untrusted: connectors
bound its size and time, and the catalog validates each definition.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal, Protocol

from gateway.domain.live_sources import Discovery, LiveSource
from gateway.domain.tenancy.principals import ToolCaller

LiveMethod = Literal[
    "tools/call",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/get",
    "completion/complete",
]


NO_COMPLETIONS: Final[Mapping[str, Any]] = {"completion": {"values": []}}
"""The result of a source that completes nothing."""


class LiveClient(Protocol):
    """The client of one request to a live source, for messages while the request runs."""

    @property
    def caller(self) -> ToolCaller | None:
        """The caller, whom the credential may name; None for a request of the gateway, or of another replica."""
        ...

    def can(self, kind: str) -> bool:
        """True if the client declared this: `elicitation`, `elicitation.url`, `sampling`, `roots`."""
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
            ClientSilent: no valid answer in time.
        """
        ...


class LiveListener(Protocol):
    """The receiver of what an attachment reports by itself; its methods return at once."""

    def changed(self) -> None:
        """The source's list of primitives has changed."""
        ...

    def updated(self, uri: str) -> None:
        """The resource at this URI of the source has changed."""
        ...


class LiveAttachment(Protocol):
    """An open attachment to one live source."""

    async def discover(self) -> Discovery:
        """List the source's primitives.

        Raises:
            LiveSourceFailed: the source does not list its primitives.
        """
        ...

    async def request(self, method: LiveMethod, params: Mapping[str, object], client: LiveClient) -> Mapping[str, Any]:
        """Run one request and return the protocol's result object. Cancellation is passed on to the source.

        Raises:
            LiveSourceDetached: the attachment ended before the result.
            LiveSourceFailed: the source refused the request, or its result is invalid or too large.
            NotFound: the source has no such primitive.
        """
        ...

    async def wait_closed(self) -> str:
        """Wait until the attachment ends without having been closed here; return the reason."""
        ...


class LiveConnector(Protocol):
    """Attaches to live sources of one kind."""

    def attach(self, source: LiveSource, listener: LiveListener) -> AbstractAsyncContextManager[LiveAttachment]:
        """Connect to the source; the attachment is closed when the block ends.

        Raises:
            LiveSourceFailed: no attachment, with a reason for the tenant's admin.
            EgressDenied: the gateway may not connect to this address.
        """
        ...
