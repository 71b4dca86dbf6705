"""What is measured beside the gateway: the upstream itself, and the thinnest proxy that Starlette and aiohttp make."""

import contextlib
import sys
from collections.abc import AsyncGenerator

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

BODY = b'{"id":7,"name":"rex","tags":["a","b"]}'


async def _pet(_: Request) -> Response:
    return Response(BODY, media_type="application/json")


def upstream() -> Starlette:
    """A small JSON answer."""
    return Starlette(routes=[Route("/pets/{id}", _pet)])


def proxy(upstream_port: int) -> Starlette:
    """A POST becomes a GET to the upstream, whose body is the answer: the limit for Python on this machine."""
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
    app = upstream() if kind == "upstream" else proxy(int(rest[0]))
    uvicorn.run(app, port=int(port), log_level="error", access_log=False, loop="uvloop", http="httptools")


if __name__ == "__main__":
    main()
