"""The ports of test servers."""

import socket

import pytest

from tests.deploy.sockets import free_port


def test_a_port_is_given_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a port without a server is still not given to a second test, whose server would then shadow the first."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        free: int = listening.getsockname()[1]
    given = free_port()
    draws = iter([given, free])

    class Random:
        def randrange(self, *_: int) -> int:
            return next(draws)

    monkeypatch.setattr("random.SystemRandom", Random)
    assert free_port() == free
