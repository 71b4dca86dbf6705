"""Prefix router: sends requests below one path prefix directly to one application, past the main router and its layers.

Requests whose path contains `but` stay with the main router.
"""

from collections.abc import Awaitable

from starlette.types import ASGIApp, Receive, Scope, Send


class PrefixRouter:
    """ASGI middleware that routes one prefix by itself, because the main router would cost as much as the edge."""

    def __init__(self, app: ASGIApp, *, prefix: str, to: ASGIApp, but: str) -> None:
        self._app = app
        self._prefix = prefix
        self._to = to
        self._but = but

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass the request to the application of the prefix or to the main one."""
        is_short = scope["type"] == "http" and scope["path"].startswith(self._prefix) and self._but not in scope["path"]
        return (self._to if is_short else self._app)(scope, receive, send)
