"""Parser and encoder of JSON-RPC 2.0 messages of agents, which are untrusted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec

from gateway.domain.json_text import load_json, refuse_many_values
from gateway.errors import BadInput, GatewayError
from gateway.upstream.live.agent.limits import MAX_CONTAINERS, MAX_VALUES

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
REFUSED: Final = 40900
"""Default JSON-RPC code of a gateway error; `data.code` has the specific code."""

MessageId = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """A request; a notification has no id."""

    id: MessageId | None
    method: str
    params: Mapping[str, Any]
    size: int
    """Size of the message in bytes."""

    @property
    def progress_token(self) -> object:
        """The progress token in `_meta`, which identifies the call of the request."""
        meta = self.params.get("_meta")
        return cast("dict[str, object]", meta).get("progressToken") if isinstance(meta, dict) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResponse:
    """A response: a result, or an error with its code and message."""

    id: MessageId | None
    result: object = None
    error: tuple[int, str] | None = None

    @property
    def members(self) -> dict[str, Any] | None:
        """The result if it is an object."""
        result = self.result
        return cast("dict[str, Any]", result) if isinstance(result, dict) else None


def parse(text: str) -> AgentRequest | AgentResponse:
    """Parse one message.

    Raises:
        BadInput: the text is not exactly one JSON-RPC message, or has too many values.
    """
    raw = text.encode()
    refuse_many_values(raw, values=MAX_VALUES, containers=MAX_CONTAINERS)  # guard: agent-values
    value = load_json(raw)
    if not isinstance(value, dict):
        raise BadInput("a message must be one JSON object; batches are refused")
    message = cast("dict[str, Any]", value)
    message_id, method, params = message.get("id"), message.get("method"), message.get("params", {})
    if message.get("jsonrpc") != "2.0" or not _is_id(message_id):
        raise BadInput('a message must have "jsonrpc": "2.0"; its id, if any, must be a string or an integer')
    if method is None:
        return AgentResponse(id=message_id, result=message.get("result"), error=_error_of(message))
    if not isinstance(method, str) or not isinstance(params, dict):
        raise BadInput("method must be a string and params an object")
    return AgentRequest(id=message_id, method=method, params=cast("dict[str, Any]", params), size=len(raw))


def request(method: str, params: Mapping[str, object], *, message_id: MessageId | None = None) -> str:
    """Encode a request; without an id, a notification."""
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": params}
    return _encode(message if message_id is None else {**message, "id": message_id})


def result(message_id: MessageId | None, value: Mapping[str, object]) -> str:
    """Encode a successful response."""
    return _encode({"jsonrpc": "2.0", "id": message_id, "result": value})


def error_response(message_id: MessageId | None, error: GatewayError, *, code: int = REFUSED) -> str:
    """Encode an error response for a gateway error."""
    body = {"code": code, "message": error.message, "data": {"code": error.code}}
    return _encode({"jsonrpc": "2.0", "id": message_id, "error": body})


def _encode(message: Mapping[str, object]) -> str:
    return msgspec.json.encode(message).decode()


def _is_id(value: object) -> bool:
    return value is None or (isinstance(value, str | int) and not isinstance(value, bool))


def _error_of(message: Mapping[str, Any]) -> tuple[int, str] | None:
    """Return code and message of an error response, or of a response with neither result nor error."""
    error = message.get("error")
    if error is None:
        return None if "result" in message else (0, "a response without a result")
    fields = cast("dict[str, object]", error) if isinstance(error, dict) else {}
    code, text = fields.get("code"), fields.get("message")
    return (code if isinstance(code, int) else 0), (text if isinstance(text, str) else "an error without a message")
