"""Interface to the live sources of providers, and the state of an open provider attachment."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from gateway.domain.identifiers import TenantId
from gateway.domain.live_sources import DiscoveredPrimitive, LiveSource
from gateway.domain.tenancy.principals import Principal
from gateway.errors import GatewayError
from gateway.upstream.live.agent.attachment import AgentAttachment
from gateway.upstream.live.interfaces import LiveAttachment, LiveListener
from gateway.web.providers.connection import CloseCode, ProviderConnection


class ProvidedAttachments(Protocol):
    """The live sources of kind `agent`, and the loop that serves their attachments."""

    async def claim(self, principal: Principal, name: str) -> LiveSource:
        """Return the tenant's agent source of this name; if it does not exist, create it for the principal's subject.

        Raises:
            Conflict: the name belongs to another subject, or to a source of another kind.
            NotFound: the source is disabled.
            LimitExceeded: the tenant has too many live sources.
        """
        ...

    async def renew(self, source: LiveSource) -> LiveSource:
        """Return the current source, after its attachment was interrupted.

        Raises:
            Conflict: the program has connected to another replica.
            NotFound: the source was removed or disabled.
        """
        ...

    async def check(self, tenant: TenantId, primitives: Sequence[DiscoveredPrimitive]) -> Sequence[str | None]:
        """Validate primitives: return for each one the reason of a refusal by the catalog, or None if it is valid.

        Raises:
            LimitExceeded: the tenant's checks take too much processor time.
        """
        ...

    def offer(self, source: LiveSource, attachment: LiveAttachment) -> AbstractAsyncContextManager[LiveListener]:
        """Serve the attachment while the block runs, in place of an earlier one of the source.

        The block is cancelled if the program connects elsewhere, or the source is changed.
        """
        ...


@dataclass(slots=True, eq=False, kw_only=True)
class OpenAttachment:
    """An attachment of this replica, its owner and its current connection; it is also the attachment's listener."""

    principal: Principal
    source: LiveSource
    attachment: AgentAttachment = field(init=False)
    connection: ProviderConnection | None = None
    listener: LiveListener | None = None
    failure: GatewayError | None = None
    is_served: asyncio.Event = field(default_factory=asyncio.Event)
    is_over: asyncio.Event = field(default_factory=asyncio.Event)

    def changed(self) -> None:
        """Notify the listener of a changed list. Without a listener, the next one reads the complete list."""
        if self.listener is not None:
            self.listener.changed()

    def updated(self, uri: str) -> None:
        """Notify the listener of a changed resource."""
        if self.listener is not None:
            self.listener.updated(uri)

    def noticed(self, notice: str) -> None:
        """Pass a notice to the listener."""
        if self.listener is not None:
            self.listener.noticed(notice)

    def end(self, code: CloseCode, reason: str) -> None:
        """End the attachment and close its connection."""
        if self.connection is not None:
            self.connection.close(code, reason)
        self.attachment.end(reason)
