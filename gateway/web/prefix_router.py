"""Prefix router: passes MCP requests to their application, without the main router and its middleware.

The main router serves all other paths, also those below the same prefix, such as webhooks and pages of people.
"""

from collections.abc import Awaitable

from starlette.types import ASGIApp, Receive, Scope, Send


class PrefixRouter:
    """ASGI middleware that routes paths with one prefix and one of some endings itself.

    The main router would take as long as the edge.
    """

    def __init__(self, app: ASGIApp, *, prefix: str, endings: tuple[str, ...], to: ASGIApp) -> None:
        self._app = app
        self._prefix = prefix
        self._endings = endings
        self._to = to

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass the request to the application of the prefix, or to the main application."""
        path: str = scope.get("path", "")
        is_short = scope["type"] == "http" and path.endswith(self._endings) and path.startswith(self._prefix)
        return (self._to if is_short else self._app)(scope, receive, send)
