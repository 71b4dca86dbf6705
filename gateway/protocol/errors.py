"""How the gateway's errors read on the MCP wire.

Our own codes lie outside the range that JSON-RPC and MCP reserve; every error carries `data.code` and
`data.correlation_id`.
"""

from collections.abc import Mapping
from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.errors import (
    BadInput,
    CapabilityMissing,
    Forbidden,
    GatewayError,
    LimitExceeded,
    NotFound,
    PolicyDenied,
    Unauthenticated,
    Unavailable,
)

LIMITED = 42900
FORBIDDEN = 40300
UNAUTHENTICATED = 40100
NOT_FOUND = 40400
UNAVAILABLE = 50300

_CODES: tuple[tuple[type[GatewayError], int], ...] = (
    (LimitExceeded, LIMITED),
    (Forbidden, FORBIDDEN),
    (PolicyDenied, FORBIDDEN),
    (Unauthenticated, UNAUTHENTICATED),
    (NotFound, NOT_FOUND),
    (Unavailable, UNAVAILABLE),
    (BadInput, INVALID_PARAMS),
)


_CAPABILITIES: Final[Mapping[str, Mapping[str, object]]] = {"elicitation.url": {"elicitation": {"url": {}}}}


def code_of(error: GatewayError) -> int:
    """The JSON-RPC error code of a gateway error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), INTERNAL_ERROR)


def details_of(error: GatewayError, correlation_id: str) -> dict[str, Any]:
    """The `data` member: stable code, correlation id, and when to try again."""
    data: dict[str, Any] = {"code": error.code, "correlation_id": correlation_id}
    if error.retry_after_s is not None:
        data["retry_after_s"] = error.retry_after_s
    return data


def to_mcp(error: GatewayError, correlation_id: str) -> MCPError:
    """The error that the SDK puts on the wire."""
    return MCPError(code_of(error), error.message, details_of(error, correlation_id))


def to_mcp_in(version: str, error: GatewayError, correlation_id: str) -> MCPError:
    """The same where the revision has an error of its own: 2026-07-28 names the capability that a client lacks."""
    if isinstance(error, CapabilityMissing) and version in MODERN_PROTOCOL_VERSIONS:
        wanted = _CAPABILITIES.get(error.capability, {error.capability: {}})
        details = {**details_of(error, correlation_id), "requiredCapabilities": wanted}
        return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, error.message, details)
    return to_mcp(error, correlation_id)


def unknown(said: str, correlation_id: str, *, code: int = INVALID_PARAMS, **more: object) -> MCPError:
    """The error for something that is not there, or not for this principal."""
    return MCPError(code, said, {"code": NotFound.code, "correlation_id": correlation_id, **more})
