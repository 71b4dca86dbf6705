"""Messages of a remote MCP server as received bytes, and the error messages that replace them."""

from collections.abc import Mapping
from typing import Any

import httpx
import msgspec

from gateway.cli.input.json_fields import JsonObject, text_at, to_object, to_objects
from gateway.cli.stdio.limits import MAX_DETAIL_LENGTH
from gateway.domain.json_text import decode_json
from gateway.errors import Forbidden, GatewayError, LimitExceeded, NotFound, Unauthenticated, Unavailable, UpstreamError
from gateway.protocol.stdio.messages import error_response

_CODES: Mapping[int, tuple[int, type[GatewayError]]] = {
    401: (40100, Unauthenticated),
    403: (40300, Forbidden),
    404: (40400, NotFound),
    429: (42900, LimitExceeded),
}
_UNAVAILABLE = 50300, Unavailable
_PARSE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
HEADER_MISMATCH = b'"code":-32020'
"""The error code in the refusal of a call whose headers lack mirrored arguments."""

LIST_CHANGES = {
    family: b'{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}' % family.encode()
    for family in ("tools", "resources", "prompts")
}
"""Notifications of a changed list, by family."""


class RemoteMessage(msgspec.Struct):
    """The members of a message that a bridge reads. A response has no `method`."""

    id: str | int | None = None
    method: str | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()

    @property
    def is_result(self) -> bool:
        """True if the message is a successful response."""
        return self.method is None and bool(bytes(self.result))

    def is_response_to(self, request_id: str | int) -> bool:
        """True if the message is the response to this request; 7 and "7" are different ids."""
        return self.method is None and type(self.id) is type(request_id) and self.id == request_id


_decode = msgspec.json.Decoder(RemoteMessage).decode


def read_remote(text: bytes) -> RemoteMessage | None:
    """Parse a message; None if the bytes are not one JSON object of this form."""
    try:
        text.decode()  # this also checks the members that are not read
        return _decode(text)
    except _PARSE_ERRORS:
        return None


def object_of(text: bytes | msgspec.Raw) -> JsonObject:
    """Parse a JSON object; return an empty one for any other text."""
    try:
        return to_object(decode_json(text))
    except _PARSE_ERRORS:
        return {}


def one_line(text: bytes) -> bytes:
    """Return the JSON text on one line. Line breaks in JSON are white space, because strings cannot contain them."""
    return text.strip().replace(b"\r", b" ").replace(b"\n", b" ")


def refusal_of(status: int, body: bytes, request_id: str | int) -> bytes:
    """Return the error response for a refusal by HTTP status: the JSON-RPC error of the body, if it has one."""
    message = read_remote(body)
    if message is not None and bytes(message.error):
        error = one_line(bytes(message.error))
        return b'{"jsonrpc":"2.0","id":' + msgspec.json.encode(request_id) + b',"error":' + error + b"}"
    code, kind = _CODES.get(status, _UNAVAILABLE)
    return error_response(code, f"HTTP {status}{_detail(body)}", kind.code, request_id)


def failure_response(error: Exception, request_id: str | int) -> bytes:
    """Return the error response for a request whose connection failed."""
    reason = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return error_response(_UNAVAILABLE[0], f"cannot reach the gateway: {reason}", Unavailable.code, request_id)
    text = f"the gateway did not respond, so the outcome of the request is unknown: {reason}"
    return error_response(_UNAVAILABLE[0], text, UpstreamError.code, request_id)


def schemas_of(result: bytes) -> Mapping[str, Any]:
    """Return the input schemas of listed tools that mirror arguments into headers, by tool name."""
    if b'"x-mcp-header"' not in result:
        return {}
    return {text_at(tool, "name"): tool.get("inputSchema") for tool in to_objects(object_of(result).get("tools"))}


def _detail(body: bytes) -> str:
    problem = object_of(body)
    detail = text_at(problem, "detail") or text_at(problem, "title")
    return f": {detail[:MAX_DETAIL_LENGTH]}" if detail else ""
