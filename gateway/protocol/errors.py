"""Translation of gateway errors into JSON-RPC errors.

The gateway's own error codes are outside the range that JSON-RPC and MCP reserve. Every error contains `data.code` and
`data.correlation_id`.
"""

import secrets
from collections.abc import Mapping
from typing import Any, Final, cast

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    URL_ELICITATION_REQUIRED,
    ErrorData,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from gateway.domain.refusals import AccountRequired, ApprovalRequired
from gateway.errors import (
    BadInput,
    CapabilityMissing,
    ClientSilent,
    DecidingRule,
    Forbidden,
    GatewayError,
    LimitExceeded,
    NotFound,
    PolicyDenied,
    Unauthenticated,
    Unavailable,
)
from gateway.protocol.limits import MAX_ECHOED, MAX_FAULTS

TASKS: Final = "io.modelcontextprotocol/tasks"
"""The extension that lets a call become a task."""

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


_SDK_CODES: Final[Mapping[int, str]] = {METHOD_NOT_FOUND: NotFound.code, INTERNAL_ERROR: GatewayError.code}
"""`data.code` by the SDK's error code; an error code not listed here gets `BadInput.code`."""

_CAPABILITIES: Final[Mapping[str, Mapping[str, object]]] = {
    "elicitation.form": {"elicitation": {"form": {}}},
    "elicitation.url": {"elicitation": {"url": {}}},
    "tasks": {"extensions": {TASKS: {}}},
}


def code_of(error: GatewayError) -> int:
    """The JSON-RPC error code of a gateway error; content that does not match its form is the client's fault."""
    if isinstance(error, ClientSilent) and error.faults:
        return INVALID_PARAMS
    return next((code for kind, code in _CODES if isinstance(error, kind)), INTERNAL_ERROR)


def details_of(error: GatewayError, correlation_id: str) -> dict[str, Any]:
    """The `data` member: stable code, correlation id, and the delay before a retry or the approval, if any."""
    data: dict[str, Any] = {"code": error.code, "correlation_id": correlation_id}
    if error.retry_after_s is not None:
        data["retry_after_s"] = error.retry_after_s
    if isinstance(error, ApprovalRequired):
        data["approval"] = dict(error.approval)
    if isinstance(error, AccountRequired):
        data["url"] = error.url
    return data


def to_mcp(error: GatewayError, correlation_id: str) -> MCPError:
    """Convert a gateway error to the SDK's exception."""
    if isinstance(error, Hidden):
        return MCPError(error.rpc_code, error.message, {**details_of(error, correlation_id), **error.more})
    return MCPError(code_of(error), error.message, details_of(error, correlation_id))


def to_url_elicitation(error: AccountRequired, correlation_id: str) -> MCPError:
    """The error of 2025-11-25 for a call that can succeed after its user has opened a page; 2026-07-28 has no
    such error.
    """
    page = {"mode": "url", "elicitationId": secrets.token_urlsafe(16), "url": error.url, "message": error.message}
    details = {**details_of(error, correlation_id), "elicitations": [page]}
    return MCPError(URL_ELICITATION_REQUIRED, error.message, details)


def to_mcp_in(version: str, error: GatewayError, correlation_id: str) -> MCPError:
    """Convert a gateway error for one revision; 2026-07-28 has a special error for a missing capability."""
    if isinstance(error, CapabilityMissing) and version in MODERN_PROTOCOL_VERSIONS:
        required = _CAPABILITIES.get(error.capability, {error.capability: {}})
        details = {**details_of(error, correlation_id), "requiredCapabilities": required}
        return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, error.message, details)
    return to_mcp(error, correlation_id)


class Hidden(NotFound):
    """Something that does not exist, or that this principal may not see; the response is the same for both.

    `rule` is the reason for the audit trail. `more` are members of the error's `data`.
    """

    def __init__(self, text: str, rule: DecidingRule, *, rpc_code: int = INVALID_PARAMS, **more: object) -> None:
        super().__init__(text, rule=rule)
        self.rpc_code = rpc_code
        self.more = more


def internal_error(correlation_id: str) -> ErrorData:
    """The error for an unexpected exception; it contains only a generic code and the correlation id."""
    return ErrorData(
        code=INTERNAL_ERROR, message="Internal server error", data=details_of(GatewayError(""), correlation_id)
    )


def invalid_params(error: ValidationError, correlation_id: str) -> MCPError:
    """The error for parameters that violate their method's schema; it names the first three faults and their paths."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    faults_text = "; ".join(_fault(fault["loc"], fault["type"], fault["msg"]) for fault in faults[:MAX_FAULTS])
    text = f"Invalid request parameters: {faults_text}" + (" …" if len(faults) > MAX_FAULTS else "")
    return MCPError(INVALID_PARAMS, text, {"code": BadInput.code, "correlation_id": correlation_id})


def with_code(error: MCPError, correlation_id: str) -> MCPError:
    """Add `data.code` and `data.correlation_id` to an error; one that already has `data.code` is returned unchanged."""
    error_data = error.error
    found: object = error_data.data
    data = cast(dict[str, Any], found) if isinstance(found, dict) else {}
    if "code" in data:
        return error
    if error_data.code == METHOD_NOT_FOUND and isinstance(found, str):
        data = {"method": found[:MAX_ECHOED]}
    code = _SDK_CODES.get(error_data.code, BadInput.code)
    return MCPError(error_data.code, error_data.message, {**data, "code": code, "correlation_id": correlation_id})


def _fault(path: tuple[int | str, ...], kind: str, text: str) -> str:
    """Format one fault without the names of the SDK's classes."""
    joined_path = "/".join(str(part) for part in path)[:MAX_ECHOED]
    return f"/{joined_path}: {'Input should be an object' if kind == 'model_type' else text[:MAX_ECHOED]}"
