"""Listening sockets of workers (`gateway.app.workers.sockets`): the kernel distributes connections among them."""

import socket
from collections.abc import Generator, Sequence
from contextlib import suppress

import pytest

from gateway.app.workers.sockets import WorkerSockets, bind_workers
from gateway.errors import BrokenSetting
from gateway.settings import load_settings


@pytest.fixture
def bound() -> Generator[Sequence[WorkerSockets]]:
    """The sockets of two workers, which listen."""
    found = bind_workers(load_settings(port=0, admin_port=0), 2)
    for each in found:
        for one in each.all:
            one.listen(1024)
            one.settimeout(0)
    yield found
    for each in found:
        each.close()


def _shares(bound: Sequence[WorkerSockets], count: int) -> list[int]:
    """The number of new connections that each socket of MCP receives."""
    clients = [socket.create_connection(("127.0.0.1", bound[0].mcp.port)) for _ in range(count)]
    shares: list[int] = []
    for each in bound:
        accepted: list[socket.socket] = []
        with suppress(OSError):  # it has no further connection, or does not listen
            while True:
                accepted.append(each.mcp.socket.accept()[0])
        shares.append(len(accepted))
        for one in accepted:
            one.close()
    for client in clients:
        client.close()
    return shares


def test_all_workers_have_the_same_ports(bound: Sequence[WorkerSockets]) -> None:
    """Ours: port 0 selects one port for MCP and one for the admin API."""
    assert len({each.mcp.port for each in bound}) == len({each.admin.port for each in bound if each.admin}) == 1


def test_both_sockets_receive_connections(bound: Sequence[WorkerSockets]) -> None:
    """Ours: the chance of fewer than 50 of 256 for one of two is below 1 in 10^20."""
    shares = _shares(bound, 256)
    assert sum(shares) == 256
    assert min(shares) >= 50


def test_a_withdrawn_socket_receives_none_until_it_listens_again(bound: Sequence[WorkerSockets]) -> None:
    """Ours: connections do not wait for a worker that ends at each start."""
    bound[0].withdraw()
    bound[0].withdraw()  # as after a second early end
    bound[0].mcp.socket.settimeout(0)
    assert _shares(bound, 64) == [0, 64]

    bound[0].mcp.socket.listen(1024)
    bound[0].mcp.socket.settimeout(0)
    assert min(_shares(bound, 256)) >= 50


def test_a_used_port_is_refused() -> None:
    """Ours: a second gateway of the same user does not join the group of the first."""
    first = bind_workers(load_settings(port=0), 2)
    try:
        for each in first:
            each.mcp.socket.listen(1)
        with pytest.raises(BrokenSetting, match=f"GATEWAY_PORT: cannot listen on 127.0.0.1:{first[0].mcp.port}"):
            bind_workers(load_settings(port=first[0].mcp.port), 2)
    finally:
        for each in first:
            each.close()
