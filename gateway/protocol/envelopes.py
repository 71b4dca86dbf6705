"""Whether the envelope and the headers of a message are those of 2026-07-28, and what is said where they are not.

The judge is the SDK's; the refusal carries what all errors of ours do.
"""

from collections.abc import Mapping
from typing import Any

from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request, find_duplicated_routing_header
from mcp_types import HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION, JSONRPCRequest
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.types import Scope

from gateway.errors import BadInput
from gateway.protocol.current import Exchange
from gateway.protocol.wire import error_message, id_of


def is_request(message: dict[str, Any]) -> bool:
    """Whether the SDK would take the message for a request, whatever it asks for."""
    try:
        JSONRPCRequest.model_validate(message, by_name=False)
    except ValidationError:
        return False
    return True


def misjudged(message: Mapping[str, Any], scope: Scope, exchange: Exchange) -> bytes | None:
    """The refusal of a request whose envelope and headers do not hold together; None when they do."""
    headers = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in scope["headers"]]
    twice = find_duplicated_routing_header(headers)
    if twice is not None:
        return _refusal(HEADER_MISMATCH, f"{twice} header appears more than once", None, exchange, message)
    verdict = classify_inbound_request(message, headers=dict(headers))
    if not isinstance(verdict, InboundLadderRejection):
        return None
    return _refusal(verdict.code, verdict.message, verdict.data, exchange, message)


def unsupported(version: str, exchange: Exchange) -> bytes:
    """The refusal of a revision that nobody knows, where there is no message that could name it."""
    data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": version}
    return _refusal(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data, exchange, {})


def _refusal(
    code: int, said: str, details: Mapping[str, Any] | None, exchange: Exchange, message: Mapping[str, Any]
) -> bytes:
    data = {**(details or {}), "code": BadInput.code, "correlation_id": exchange.correlation_id}
    return error_message(code, said, data=data, request_id=id_of(message))
