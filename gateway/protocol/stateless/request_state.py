"""The state that a client carries between the rounds of a call (`requestState`): sealed, bound, and single-use.

The SDK's middleware seals the state with keys that all replicas share. It opens a state for ten minutes, and only for
the same principal, profile, method, primitive and arguments. The gateway adds single use, because otherwise a
response, such as a confirmation, could be replayed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from mcp_types import methods as surface
from mcp_types.methods import INPUT_REQUIRED_METHODS

from gateway.domain.identifiers import TenantId
from gateway.errors import LimitExceeded
from gateway.protocol.request_context import CURRENT_REQUEST, SdkContext
from gateway.protocol.server_name import NAME
from gateway.protocol.stateless.input_rounds import decode_state
from gateway.protocol.stateless.limits import STATE_S


class Nonces(Protocol):
    """Single-use ids of all tenants."""

    async def use(self, tenant: TenantId, nonce: str, *, for_s: int) -> bool:
        """Mark the id as used; False if it is marked already."""
        ...

    async def free(self, tenant: TenantId, nonce: str) -> None:
        """Release an id whose request had no effect."""
        ...


def request_state_middleware(keys: Sequence[bytes], nonces: Nonces) -> list[ServerMiddleware[Any]]:
    """The middleware in front of the methods, outermost first. The first key seals states; every key opens them."""
    security = RequestStateSecurity(keys=keys, ttl=STATE_S, bind_principal=_principal)
    return [RequestStateBoundary(security, default_audience=NAME), _SingleUse(nonces)]


class _SingleUse:
    """Accepts each state once; a call refused with `LimitExceeded` does not count."""

    def __init__(self, nonces: Nonces) -> None:
        self._nonces = nonces

    async def __call__(self, ctx: SdkContext, call_next: CallNext) -> HandlerResult:
        state = _state_of(ctx)
        if state is None:
            return await call_next(ctx)
        # validated first, because a malformed request must not use up its state
        surface.validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
        tenant, nonce = CURRENT_REQUEST.get().principal.tenant, decode_state(state).nonce
        if not nonce or not await self._nonces.use(tenant, nonce, for_s=STATE_S):  # guard: state-once
            raise MCPError(
                INVALID_PARAMS, "Invalid or expired requestState", {"reason": "invalid_request_state"}
            ) from None
        try:
            return await call_next(ctx)
        except LimitExceeded:  # the request had no effect, so the client may retry with the same state
            await self._nonces.free(tenant, nonce)
            raise


def _state_of(ctx: SdkContext) -> str | None:
    params: Mapping[str, Any] = ctx.params or {}
    return params.get("requestState") if ctx.method in INPUT_REQUIRED_METHODS else None


def _principal(_: SdkContext) -> str:
    context = CURRENT_REQUEST.get()
    principal = context.principal
    return f"{principal.tenant}\n{principal.subject}\n{context.registry.profile}"  # guard: state-principal
