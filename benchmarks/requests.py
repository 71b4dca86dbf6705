"""Raw HTTP requests of both protocol eras, and the documents whose operations they call."""

import json
from typing import Any

MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
ACCEPT = "application/json, text/event-stream"
PROTOCOL = "io.modelcontextprotocol"
CALL: dict[str, Any] = {"name": "get_pet", "arguments": {"id": 7, "v": "1"}}
"""The call that is measured; its operation is the first of every document."""

ID = 1000
"""The id of every request here; a load with many connections gives each its own, with as many digits."""

INITIALIZE: dict[str, Any] = {
    "protocolVersion": HANDSHAKE,
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def document(upstream_port: int, tools: int) -> dict[str, Any]:
    """Build an OpenAPI document with this many operations; the first is the one that is called."""
    parameters = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
        {"name": "v", "in": "query", "schema": {"type": "string"}},
    ]
    named = [("/pets/{id}", "get_pet"), *((f"/s{n}/things/{{id}}", f"list_things_{n:04}") for n in range(1, tools))]
    paths = {
        path: {"get": {"operationId": name, "parameters": parameters, "responses": {"200": {"description": "ok"}}}}
        for path, name in named
    }
    server = {"url": f"http://127.0.0.1:{upstream_port}"}
    return {"openapi": "3.1.0", "info": {"title": "bench", "version": "1"}, "servers": [server], "paths": paths}


def get(path: str) -> bytes:
    """Build a raw GET."""
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()


def post(path: str, body: object, headers: dict[str, str] | None = None) -> bytes:
    """Build a raw POST of JSON."""
    raw = json.dumps(body).encode()
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return f"{head}{lines}content-length: {len(raw)}\r\n\r\n".encode() + raw


def modern(path: str, method: str, params: dict[str, Any] | None = None, *, key: str | None = None) -> bytes:
    """Build a request of 2026-07-28, complete in itself."""
    meta = (params or {}).get("_meta", {})
    meta = {f"{PROTOCOL}/protocolVersion": MODERN, f"{PROTOCOL}/clientCapabilities": {}, **meta}
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    if params and "name" in params:
        headers["mcp-name"] = params["name"]
    return post(path, _message(method, {**(params or {}), "_meta": meta}), _credentials(key) | headers)


def handshake(
    path: str,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    key: str | None = None,
    session: str | None = None,
) -> bytes:
    """Build a request of the handshake era, in a session if one is given."""
    headers = _credentials(key)
    if method != "initialize":
        headers["mcp-protocol-version"] = HANDSHAKE
    if session is not None:
        headers["mcp-session-id"] = session
    return post(path, _message(method, params or {}), headers)


def _message(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ID, "method": method, "params": params}


def _credentials(key: str | None) -> dict[str, str]:
    return {"accept": ACCEPT} if key is None else {"authorization": f"Bearer {key}", "accept": ACCEPT}
