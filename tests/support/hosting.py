"""An ASGI server for an application of ours: uvicorn with lifespan events, on a free loopback port."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn

from gateway.app.readiness import Readiness
from tests.support.gateway import OPERATOR_KEY, RunningGateway
from tests.support.serving import Server, clients_of


@asynccontextmanager
async def hosted(app: Any) -> AsyncGenerator[RunningGateway]:
    """The application served for as long as the block runs, as a running gateway."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = Server(uvicorn.Config(app, lifespan="on", access_log=False, log_config=None, proxy_headers=False))
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listener])
        try:
            with anyio.fail_after(30):
                await server.answering.wait()
            async with clients_of(url, OPERATOR_KEY) as (admin, http):
                yield RunningGateway(url, admin, http, Readiness())
        finally:
            server.leave()
