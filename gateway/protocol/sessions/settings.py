"""The settings of a session: its resource subscriptions, and the minimum level of log messages to send.

The URI is the identity of a subscription, so the result of `resources/subscribe` is empty.
"""

from mcp.server.context import HandlerResult
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams

from gateway.domain.primitives import Family
from gateway.protocol.methods.capabilities import has_resources, hidden, require, require_family
from gateway.protocol.methods.limits import MAX_ECHOED_URI_LENGTH
from gateway.protocol.methods.resources import RESOURCE_NOT_FOUND
from gateway.protocol.request_context import CURRENT_REQUEST, SdkContext
from gateway.redis.sessions.keys import SessionKeys
from gateway.redis.sessions.stores import SessionStores


class SessionSettings:
    """Handles `resources/subscribe`, `resources/unsubscribe` and `logging/setLevel` of handshake revisions."""

    def __init__(self, stores: SessionStores) -> None:
        self._stores = stores

    async def subscribe(self, ctx: SdkContext, params: SubscribeRequestParams) -> HandlerResult:
        """Subscribe the session to changes of this resource.

        Raises:
            Hidden: no resources are declared, or the resource does not exist or is not readable.
            MCPError: there is no session.
            GatewayError: the session has ended or has too many subscriptions, or Redis is unavailable.
        """
        registry, uri = CURRENT_REQUEST.get().registry, params.uri
        require_family(registry, Family.RESOURCE, uri, ctx.method)
        if not registry.can_read(uri):  # guard: subscribe-readable
            text, code = "Resource not found", RESOURCE_NOT_FOUND
            raise hidden(registry, Family.RESOURCE, uri, text, rpc_code=code, uri=uri[:MAX_ECHOED_URI_LENGTH])
        await self._stores.subscriptions.subscribe(self._keys(ctx), params.uri)
        return {}

    async def unsubscribe(self, ctx: SdkContext, params: UnsubscribeRequestParams) -> HandlerResult:
        """Remove a subscription; it is not an error if there was none."""
        require(has_resources(CURRENT_REQUEST.get().registry), ctx.method)
        await self._stores.subscriptions.unsubscribe(self._keys(ctx), params.uri)
        return {}

    async def set_level(self, ctx: SdkContext, params: SetLevelRequestParams) -> HandlerResult:
        """Send only log messages of this level and above from now on."""
        require(CURRENT_REQUEST.get().registry.is_interactive, ctx.method)
        await self._stores.preferences.set_level(self._keys(ctx), params.level)
        return {}

    def _keys(self, ctx: SdkContext) -> SessionKeys:
        context = CURRENT_REQUEST.get()
        if context.session is None:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", ctx.method)
        return self._stores.sessions.keys(context.principal.tenant, context.session)
