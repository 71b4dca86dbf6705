"""The listening sockets of all workers: one per worker and port, among which the kernel distributes connections.

A single socket shared by all workers would give most connections to the worker that accepts first. The supervisor
keeps the sockets open, so connections that wait in the queue of a socket survive the replacement of its worker.
"""

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.app.server.bound_listener import BoundListener
from gateway.errors import BrokenSetting
from gateway.settings import Settings


@dataclass(slots=True)
class WorkerSockets:
    """The sockets of one worker: that of MCP, and that of the admin API if it has a port of its own."""

    mcp: BoundListener
    admin: BoundListener | None

    @property
    def all(self) -> Sequence[socket.socket]:
        """Both sockets."""
        return [one.socket for one in (self.mcp, self.admin) if one is not None]

    def withdraw(self) -> None:
        """Replace the sockets by new ones, which receive no connections before a worker listens on them.

        Connections in the queues of the former ones end. A socket that listens again after `shutdown` would receive
        all connections of its port.
        """
        self.mcp = self.mcp.bind_again()
        self.admin = None if self.admin is None else self.admin.bind_again()

    def close(self) -> None:
        """Release the addresses."""
        for one in self.all:
            one.close()


def bind_workers(settings: Settings, count: int) -> Sequence[WorkerSockets]:
    """Bind the sockets of so many workers; port 0 selects one free port for all.

    Raises:
        BrokenSetting: an address cannot be bound, or is in use.
    """
    bound: list[WorkerSockets] = []
    try:
        with_addresses = settings
        for _ in range(count):
            bound.append(_bind(with_addresses, is_first=not bound))
            first = bound[0]
            ports = {"port": first.mcp.port} | ({} if first.admin is None else {"admin_port": first.admin.port})
            with_addresses = settings.model_copy(update=ports)
    except BrokenSetting:
        for one in bound:
            one.close()
        raise
    return bound


def _bind(settings: Settings, *, is_first: bool) -> WorkerSockets:
    mcp = _bound(settings.host, settings.port, "GATEWAY_PORT", is_first=is_first)
    if settings.admin_port is None:
        return WorkerSockets(mcp, None)
    try:
        admin = _bound(settings.admin_address, settings.admin_port, "GATEWAY_ADMIN_PORT", is_first=is_first)
    except BrokenSetting:
        mcp.socket.close()
        raise
    return WorkerSockets(mcp, admin)


def _bound(host: str, port: int, setting: str, *, is_first: bool) -> BoundListener:
    """Bind one socket of a group. A shared port would join the group of another gateway of the same user silently.

    So the first socket of a given port is bound without sharing once, which fails if the port is in use.
    """
    if is_first and port:  # guard: shared-port-alone
        BoundListener(host, port, setting=setting).socket.close()
    return BoundListener(host, port, setting=setting, is_shared=True)
