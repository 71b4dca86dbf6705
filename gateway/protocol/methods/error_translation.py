"""The outermost middleware of the SDK server: it raises every exception as an MCP error.

Unexpected exceptions lose their details; gateway and validation errors keep theirs.
"""

from typing import Any

import structlog
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from gateway.errors import GatewayError
from gateway.protocol.errors import internal_error, invalid_params, to_mcp_in, with_code
from gateway.protocol.request_context import CURRENT_REQUEST

log = structlog.get_logger(__name__)


async def translate_errors(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Translate gateway errors into MCP errors, and any other exception into an internal error without details."""
    try:
        return await call_next(ctx)
    except MCPError as error:
        raise with_code(error, CURRENT_REQUEST.get().correlation_id) from None
    except ValidationError as error:
        raise invalid_params(error, CURRENT_REQUEST.get().correlation_id) from None
    except GatewayError as error:
        raise to_mcp_in(ctx.protocol_version, error, CURRENT_REQUEST.get().correlation_id) from None
    except Exception:
        correlation_id = CURRENT_REQUEST.get().correlation_id
        log.exception("method_failed", method=ctx.method, correlation_id=correlation_id)
        raise MCPError.from_error_data(internal_error(correlation_id)) from None
