"""What the client of a session sets for itself: which resources it is told of, and how much it wants to read of logs.

The URI is the identity of a subscription, so `resources/subscribe` answers with nothing.
"""

from typing import Any

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams

from gateway.protocol.errors import unknown
from gateway.protocol.methods.capabilities import has_resources, require
from gateway.protocol.methods.resources import RESOURCE_NOT_FOUND
from gateway.protocol.request_context import CURRENT_REQUEST
from gateway.redis.sessions.keys import SessionKeys
from gateway.redis.sessions.stores import SessionStores

_SHOWN = 2048

Context = ServerRequestContext[Any, Any]


class SessionSettings:
    """Answers `resources/subscribe`, `resources/unsubscribe` and `logging/setLevel` of the handshake era."""

    def __init__(self, stores: SessionStores) -> None:
        self._stores = stores

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> HandlerResult:
        """Tell the session when this resource changes.

        Raises:
            MCPError: there is no such resource, or not for this principal: nobody can tell which.
        """
        context = CURRENT_REQUEST.get()
        require(has_resources(context.registry), ctx.method)
        if not context.registry.can_read(params.uri):
            said = params.uri[:_SHOWN]
            raise unknown("Resource not found", context.correlation_id, code=RESOURCE_NOT_FOUND, uri=said)
        await self._stores.subscriptions.subscribe(self._keys(ctx), params.uri)
        return {}

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> HandlerResult:
        """Tell it no longer; that it never was told is no error."""
        require(has_resources(CURRENT_REQUEST.get().registry), ctx.method)
        await self._stores.subscriptions.unsubscribe(self._keys(ctx), params.uri)
        return {}

    async def set_level(self, ctx: Context, params: SetLevelRequestParams) -> HandlerResult:
        """Send log messages of this level and above from now on."""
        require(CURRENT_REQUEST.get().registry.talks, ctx.method)
        await self._stores.preferences.set_level(self._keys(ctx), params.level)
        return {}

    def _keys(self, ctx: Context) -> SessionKeys:
        context = CURRENT_REQUEST.get()
        if context.session is None:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", ctx.method)
        return self._stores.sessions.keys(context.principal.tenant, context.session)
