"""Targets beside the gateway: the upstream itself, and a minimal proxy of Starlette and aiohttp."""

import contextlib
import json
import sys
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from benchmarks.requests import CALL, MODERN
from benchmarks.tokens import KEYS_PATH, key_set

BODY = b'{"id":7,"name":"rex","tags":["a","b"]}'
_TOOL = {"name": CALL["name"], "description": "A pet.", "inputSchema": {"type": "object"}}
_DONE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_RESULTS: dict[str, dict[str, Any]] = {
    "server/discover": {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, **_DONE},
    "tools/list": {"tools": [_TOOL], **_DONE},
    "tools/call": {
        "content": [{"type": "text", "text": BODY.decode()}],
        "structuredContent": json.loads(BODY),
        "resultType": "complete",
    },
    "ping": {},
}
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(BODY)).encode())]


async def upstream(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond to everything with a small JSON body, without a framework, so that the upstream never limits a
    measurement. Below `/mcp/` it is an MCP server of the revision that the path names; it publishes an issuer's keys.
    """
    if scope["type"] == "http" and scope["path"].startswith("/mcp/"):
        await _serve_mcp(scope["path"].removeprefix("/mcp/"), scope["method"], receive, send)
    elif scope["type"] == "http" and scope["path"] == KEYS_PATH:
        body = json.dumps(key_set()).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
    elif scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": BODY})


async def _serve_mcp(revision: str, method: str, receive: Receive, send: Send) -> None:
    raw = (await receive()).get("body") or b"{}"
    message: dict[str, Any] = json.loads(raw)
    result = _RESULTS.get(message.get("method", "")) if method == "POST" else None
    if message.get("method") == "initialize":
        result = {
            "protocolVersion": revision,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "b", "version": "1"},
        }
    is_old = message.get("method") == "server/discover" and revision != MODERN
    body = (
        b""
        if result is None or is_old
        else json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    )
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if message.get("method") == "initialize":
        headers.append((b"mcp-session-id", b"benchmark"))
    status = 405 if method != "POST" else 400 if is_old else 200 if body else 202
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


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
