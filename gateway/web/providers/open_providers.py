"""The open connections and attachments of providers on this replica.

Connections and attachments end when their key changes, their tenant is removed, or the replica drains.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Self

import anyio

from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.principals import Principal
from gateway.errors import DatabaseUnavailable
from gateway.identity.authenticator import Authenticator
from gateway.web.providers.attachments import OpenAttachment
from gateway.web.providers.connection import CloseCode, ProviderConnection
from gateway.web.providers.limits import DRAIN_S, RECHECK_S

STOPPING: Final = "this replica is shutting down"


class OpenProviders:
    """Registry of this replica's providers. Enter it with `async with` before connections are accepted."""

    def __init__(self, credentials: Authenticator) -> None:
        self.credentials = credentials
        self._recheck = asyncio.Event()
        self.connections: dict[ProviderConnection, Principal] = {}
        self.attached: dict[tuple[TenantId, str], OpenAttachment] = {}
        """Attachments by tenant and name of the source."""
        self.tasks = TaskSupervisor()
        self.is_draining = False

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again."""
        return self.tasks.failing

    async def __aenter__(self) -> Self:
        self.tasks.open(self._recheck_keys)
        return self

    async def __aexit__(self, *_: object) -> None:
        for attached in tuple(self.attached.values()):
            attached.end(CloseCode.RESTART, STOPPING)
        with anyio.move_on_after(DRAIN_S):
            for attached in tuple(self.attached.values()):
                await attached.is_over.wait()
        await self.tasks.close()

    def count(self, tenant: TenantId) -> int:
        """Number of open connections of a tenant."""
        return sum(principal.tenant == tenant for principal in self.connections.values())

    def end_tenant(self, tenant: TenantId) -> None:
        """End all connections and attachments of a removed tenant."""
        self._end(lambda principal: principal.tenant == tenant, CloseCode.SOURCE_GONE, "the tenant was removed")

    def end(self, is_over: Callable[[Principal], bool]) -> None:
        """End all connections and attachments of principals for which `is_over` returns True."""
        self._end(is_over, CloseCode.KEY_ENDED, "the key was revoked or changed")

    def _end(self, is_over: Callable[[Principal], bool], code: CloseCode, reason: str) -> None:
        for attached in tuple(self.attached.values()):
            if is_over(attached.principal):
                attached.end(code, reason)
        for connection, principal in self.connections.items():
            if is_over(principal):  # guard: provide-key-ended
                connection.close(code, reason)

    def recheck_all(self) -> None:
        """Check all keys now, because events may have been missed."""
        self._recheck.set()

    def drain(self) -> None:
        """Refuse new connections; close each open one when its calls have ended, but after 4 s at the latest."""
        self.is_draining = True
        attached_here = tuple(self.attached.values())
        for connection in self.connections.keys() - {attached.connection for attached in attached_here}:
            connection.close(CloseCode.RESTART, STOPPING)
        for attached in attached_here:
            self.tasks.spawn(_end_after_calls, attached)

    async def _recheck_keys(self) -> None:
        """Check the keys of all connections once a minute, because keys expire and events can be lost."""
        while True:
            with anyio.move_on_after(RECHECK_S):
                await self._recheck.wait()
            self._recheck.clear()
            owners = {attached.principal for attached in self.attached.values()}
            for principal in owners.union(self.connections.values()):
                try:
                    is_valid = await self.credentials.still_valid(principal)
                except DatabaseUnavailable:
                    continue
                if not is_valid:  # guard: provide-key-rechecked
                    self.end(principal.__eq__)


async def _end_after_calls(attached: OpenAttachment) -> None:
    """End an attachment when its running calls have ended."""
    with anyio.move_on_after(DRAIN_S):
        await attached.attachment.wait_idle()
    attached.end(CloseCode.RESTART, STOPPING)
