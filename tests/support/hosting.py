"""Somebody else's ASGI server for an application of ours: uvicorn with lifespan events, on a free loopback port."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import httpx
import uvicorn

from gateway.app.readiness import Readiness
from tests.support.gateway import OPERATOR_KEY, RunningGateway


@asynccontextmanager
async def hosted(app: Any) -> AsyncGenerator[RunningGateway]:
    """The application served for as long as the block runs, as a running gateway."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = _Server(uvicorn.Config(app, lifespan="on", access_log=False, log_config=None, proxy_headers=False))
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listener])
        try:
            with anyio.fail_after(30):
                await server.answering.wait()
            bearer = {"authorization": f"Bearer {OPERATOR_KEY}"}
            async with (
                httpx.AsyncClient(base_url=f"{url}/admin/v1", headers=bearer, timeout=60, trust_env=False) as admin,
                httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as http,
            ):
                yield RunningGateway(url, admin, http, Readiness())
        finally:
            server.should_exit = True


class _Server(uvicorn.Server):
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
