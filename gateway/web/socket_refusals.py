"""Refusals of WebSocket handshakes: an HTTP response if the server supports it (ASGI extension), otherwise a close."""

from starlette.responses import Response
from starlette.types import Scope, Send

_POLICY = 1008


async def refuse_handshake(scope: Scope, send: Send, response: Response) -> None:
    """Refuse the handshake with this response; a server without the extension sends 403."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": _POLICY})
        return
    start = {"type": "websocket.http.response.start", "status": response.status_code, "headers": response.raw_headers}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": bytes(response.body)})
