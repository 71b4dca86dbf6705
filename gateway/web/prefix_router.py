"""Prefix router: passes requests below one path prefix to one application, without the main router and its middleware.

The main router serves requests whose path contains `but`.
"""

from collections.abc import Awaitable

from starlette.types import ASGIApp, Receive, Scope, Send


class PrefixRouter:
    """ASGI middleware that routes one prefix itself, because the main router would take as long as the edge."""

    def __init__(self, app: ASGIApp, *, prefix: str, to: ASGIApp, but: str) -> None:
        self._app = app
        self._prefix = prefix
        self._to = to
        self._but = but

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass the request to the application of the prefix, or to the main application."""
        is_short = scope["type"] == "http" and scope["path"].startswith(self._prefix) and self._but not in scope["path"]
        return (self._to if is_short else self._app)(scope, receive, send)
