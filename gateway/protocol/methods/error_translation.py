"""The outermost middleware of the SDK server: it raises every exception as an MCP error, and notes refusals.

Unexpected exceptions lose their details; gateway and validation errors keep theirs.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

import structlog
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from gateway.domain.audit import RuleKind
from gateway.errors import BadInput, DecidingRule, GatewayError
from gateway.identity.refusal_trail import REQUEST, RefusalTrail
from gateway.protocol.errors import internal_error, invalid_params, to_mcp_in, with_code
from gateway.protocol.request_context import CURRENT_REQUEST, note_refused

log = structlog.get_logger(__name__)

_CALL: Final = "call"
_ACTIONS: Final[Mapping[str, str]] = {
    "tools/call": _CALL,
    "resources/read": "read",
    "prompts/get": "get",
    "completion/complete": "complete",
}
"""The action in the audit trail, by method; that of the other methods is `request`, and their target the method."""
_STATE_REFUSED: Final = "invalid_request_state"
"""The SDK's mark of a `requestState` that it does not accept."""
_STATE_RULE: Final = DecidingRule(RuleKind.STATE, words="of another principal, request or time, or used before")


class ErrorTranslation:
    """Translates gateway errors into MCP errors, and any other exception into an internal error without details."""

    def __init__(self, refusals: RefusalTrail) -> None:
        self._refusals = refusals

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Run one request."""
        try:
            return await call_next(ctx)
        except MCPError as error:
            if _as_object(error.error.data).get("reason") == _STATE_REFUSED:
                self._note(ctx, BadInput(error.message, rule=_STATE_RULE))
            raise with_code(error, CURRENT_REQUEST.get().correlation_id) from None
        except ValidationError as error:
            raise invalid_params(error, CURRENT_REQUEST.get().correlation_id) from None
        except GatewayError as error:
            self._note(ctx, error)
            raise to_mcp_in(ctx.protocol_version, error, CURRENT_REQUEST.get().correlation_id) from None
        except Exception:
            correlation_id = CURRENT_REQUEST.get().correlation_id
            log.exception("method_failed", method=ctx.method, correlation_id=correlation_id)
            raise MCPError.from_error_data(internal_error(correlation_id)) from None

    def _note(self, ctx: ServerRequestContext[Any, Any], error: GatewayError) -> None:
        action = _ACTIONS.get(ctx.method)
        context = CURRENT_REQUEST.get()
        target = ctx.method if action is None else _target_of(ctx.params or {})
        if action == _CALL:
            target = context.registry.stored_name(target)
        note_refused(self._refusals, context, error, action=action or REQUEST, target=target)


def _target_of(params: Mapping[str, Any]) -> str:
    """The name or URI in the parameters of a request, or in its reference."""
    named = _as_object(params.get("ref")) or params
    found: object = named.get("name") or named.get("uri")
    return found if isinstance(found, str) else ""


def _as_object(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
