"""The server that serves the gateways of tests, and the clients that ask them."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import httpx
import uvicorn

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of plain HTTP: each would read whom this machine trusts, which takes longer than most tests."""


class Server(uvicorn.Server):
    """uvicorn without its signal handlers, and with a notice when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answering = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals to the test runner."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        self.answering.set()


@asynccontextmanager
async def clients_of(url: str, operator_key: str) -> AsyncGenerator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """The operator at the admin API, and whoever comes without a credential."""
    async with (
        httpx.AsyncClient(
            base_url=f"{url}/admin/v1",
            headers={"authorization": f"Bearer {operator_key}"},
            timeout=60,
            verify=NO_TLS,
            trust_env=False,
        ) as admin,
        httpx.AsyncClient(base_url=url, timeout=30, verify=NO_TLS, trust_env=False) as http,
    ):
        yield admin, http
