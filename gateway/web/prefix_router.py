"""Prefix router: forwards MCP requests to their ASGI application, bypassing the main router and its middleware.

A slash at the end of an MCP URL is removed. Some clients add one, and follow no redirect or lose the body with it.

The main router serves all other paths. Some of these have the same prefix, such as webhooks and HTML pages.
"""

from collections.abc import Awaitable

from starlette.types import ASGIApp, Receive, Scope, Send


class PrefixRouter:
    """ASGI middleware that routes paths with a given prefix and one of the given suffixes.

    The main router would take as long as the edge.
    """

    def __init__(self, app: ASGIApp, *, prefix: str, endings: tuple[str, ...], to: ASGIApp) -> None:
        self._app = app
        self._prefix = prefix
        self._endings = endings
        self._slashed = tuple(f"{ending}/" for ending in endings)
        self._to = to

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Forward the request to the application of the prefix, or to the main application."""
        path: str = scope.get("path", "")
        if path.endswith(self._slashed) and path.startswith(self._prefix):
            path = scope["path"] = path[:-1]
        is_short = scope["type"] == "http" and path.endswith(self._endings) and path.startswith(self._prefix)
        return (self._to if is_short else self._app)(scope, receive, send)
