"""Targets beside the gateway: the upstream itself, and a minimal proxy of Starlette and aiohttp."""

import contextlib
import sys
from collections.abc import AsyncGenerator

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

BODY = b'{"id":7,"name":"rex","tags":["a","b"]}'
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(BODY)).encode())]


async def upstream(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond to everything with a small JSON body, without a framework, so that the upstream never limits a
    measurement.
    """
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": BODY})


def proxy(upstream_port: int) -> Starlette:
    """Forward a POST as a GET to the upstream and return its body: the limit for Python on this machine."""
    held: dict[str, aiohttp.ClientSession] = {}

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with aiohttp.ClientSession() as session:
            held["session"] = session
            yield

    async def forward(request: Request) -> Response:
        await request.body()
        async with held["session"].get(f"http://127.0.0.1:{upstream_port}/pets/7?v=1") as answer:
            return Response(await answer.read(), media_type="application/json")

    return Starlette(routes=[Route("/", forward, methods=["POST"])], lifespan=lifespan)


def main() -> None:
    """`python -m benchmarks.targets upstream PORT` or `… proxy PORT UPSTREAM_PORT`."""
    kind, port, *rest = sys.argv[1:]
    app: ASGIApp = upstream if kind == "upstream" else proxy(int(rest[0]))
    lifespan = "off" if kind == "upstream" else "on"
    options = {"log_level": "error", "access_log": False, "loop": "uvloop", "http": "httptools"}
    uvicorn.run(app, port=int(port), lifespan=lifespan, **options)  # type: ignore[arg-type]  # a mapping of literals


if __name__ == "__main__":
    main()
