"""A short way: requests below one path prefix go straight to one application, past the router and what surrounds it.

Those with the words `but` in their path stay with the router.
"""

from collections.abc import Awaitable

from starlette.types import ASGIApp, Receive, Scope, Send


class PrefixRouter:
    """ASGI middleware that takes a prefix's requests out of the queue; routing them would cost as much as the edge."""

    def __init__(self, app: ASGIApp, *, prefix: str, to: ASGIApp, but: str) -> None:
        self._app = app
        self._prefix = prefix
        self._to = to
        self._but = but

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass the request on, one way or the other."""
        is_short = scope["type"] == "http" and scope["path"].startswith(self._prefix) and self._but not in scope["path"]
        return (self._to if is_short else self._app)(scope, receive, send)
