"""The gateway as an ASGI application for another server. Its lifespan opens all parts, including embedded servers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.app.backends import open_backends
from gateway.app.build import build_app
from gateway.app.python.registrations import Registrations
from gateway.app.readiness import Readiness
from gateway.app.secrets import find_keys
from gateway.errors import BrokenSetting
from gateway.settings import Settings


class GatewayApp:
    """Serves requests while its lifespan is open; the lifespan can be opened again after it was closed."""

    def __init__(self, settings: Settings, code: Registrations) -> None:
        self._settings = settings
        self._code = code
        self._lifespan = Starlette(lifespan=self._live)
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or run the lifespan of the server."""
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        elif self._app is None:
            raise RuntimeError("the gateway has not been started: its server must send lifespan events")
        else:
            await self._app(scope, receive, send)

    @asynccontextmanager
    async def _live(self, _: Starlette) -> AsyncGenerator[None]:
        self._settings.check_exposure()
        if self._settings.admin_port is not None:
            raise BrokenSetting("GATEWAY_ADMIN_PORT: an application in another server has that server's listener only")
        keys, readiness = find_keys(self._settings), Readiness()
        async with open_backends(self._settings) as addresses:
            app = build_app(self._settings, addresses=addresses, keys=keys, readiness=readiness, code=self._code)
            async with app.lifespan():
                self._app = app.asgi
                try:
                    yield
                finally:
                    self._app = None
                    readiness.drain()
