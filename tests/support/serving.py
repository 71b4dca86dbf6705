"""The server that serves the gateways of tests, and the clients that ask them."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import httpx
import uvicorn

from tests.support.http_transport import LoopTransport
from tests.support.pages import PAGE_HOOKS

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of plain HTTP: each would read whom this machine trusts, which takes longer than most tests."""


_LOOK_S = 0.005


class Server(uvicorn.Server):
    """uvicorn without its signal handlers, with a notice when it answers, and ended on request."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answering = asyncio.Event()
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """End; uvicorn alone would see it a tenth of a second later, and then let another one pass."""
        self.should_exit = True
        self._leaving.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals to the test runner."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then report."""
        await super().startup(sockets)
        self.answering.set()

    async def main_loop(self) -> None:
        """Keep the date of answers up to the second until it is asked to leave."""
        while not await self.on_tick(0):
            with anyio.move_on_after(1):
                await self._leaving.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and let the open ones end what they are at."""
        for listener in self.servers:
            listener.close()
        for listening in sockets or []:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110  # it has no event
            await asyncio.sleep(_LOOK_S)
        for listener in self.servers:
            await listener.wait_closed()
        await self.lifespan.shutdown()


def http_client(**options: Any) -> httpx.AsyncClient:
    """A client of servers of plain HTTP."""
    return httpx.AsyncClient(transport=LoopTransport(), trust_env=False, event_hooks=PAGE_HOOKS, **options)


@asynccontextmanager
async def clients_of(url: str, operator_key: str) -> AsyncGenerator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """The operator at the admin API, and a caller without a credential."""
    bearer = {"authorization": f"Bearer {operator_key}"}
    async with (
        http_client(base_url=f"{url}/admin/v1", headers=bearer, timeout=60) as admin,
        http_client(base_url=url, timeout=30) as http,
    ):
        yield admin, http
