"""Parser and writer of JSON-RPC 2.0 messages of remote MCP servers, and translation of their errors.

Strings of the server are quoted, escaped and truncated in error messages.
"""

import re
from collections.abc import Mapping
from typing import Any, NoReturn, TypeGuard

import msgspec

from gateway.domain.fairness.large_work import run_large
from gateway.domain.identifiers import TenantId
from gateway.domain.json_text import load_json, refuse_many_values
from gateway.domain.refusals import LiveSourceFailed
from gateway.errors import BadInput, CapabilityMissing, DocumentTooLarge, GatewayError, InvalidBody, NotFound
from gateway.upstream.live.mcp.limits import MAX_CONTAINERS, MAX_MESSAGE_BYTES, MAX_QUOTED_LENGTH, MAX_VALUES

Message = Mapping[str, Any]


METHOD_UNKNOWN, INTERNAL = -32601, -32603
_CAPABILITY_MISSING = -32021
_CAPABILITIES = ("elicitation", "sampling", "roots")
_RESOURCE_NOT_FOUND = -32002
_UNKNOWN = re.compile(r"(unknown|no such) (tool|prompt|resource)|(tool|prompt|resource)\b.*not found", re.IGNORECASE)


class RemoteRefusal(LiveSourceFailed):
    """The server responded with a JSON-RPC error; `status` is the HTTP status."""

    def __init__(self, error: Mapping[str, Any], *, status: int = 200) -> None:
        self.status = status
        number, words = error.get("code"), error.get("message")
        self.number = number if isinstance(number, int) else INTERNAL
        self.words = words if isinstance(words, str) else ""
        self.details: object = error.get("data")
        super().__init__(f"the server refused the request with error {self.number}; its message: {quote(self.words)}")


class InvalidMessage(LiveSourceFailed):
    """The server sent bytes that are not a JSON-RPC message."""


def write_message(**members: object) -> bytes:
    """Return a JSON-RPC message with these members.

    Raises:
        BadInput: a value cannot be written as JSON.
    """
    try:
        return msgspec.json.encode({"jsonrpc": "2.0", **members})
    except (TypeError, ValueError, OverflowError, RecursionError):  # for example a lone surrogate
        raise BadInput("the request cannot be written as JSON") from None


def read_message(raw: bytes) -> Message:
    """Parse one message.

    Raises:
        InvalidMessage: the bytes are not exactly one JSON-RPC message, or the JSON is ambiguous.
    """
    if len(raw) > MAX_MESSAGE_BYTES:
        raise InvalidMessage(f"the server sent a message of more than {MAX_MESSAGE_BYTES:,} bytes")
    try:
        refuse_many_values(raw, values=MAX_VALUES, containers=MAX_CONTAINERS)  # guard: live-message-values
        message = load_json(raw)
    except (InvalidBody, DocumentTooLarge) as error:
        raise InvalidMessage(f"the server sent no valid message: {show(error.message)}") from None
    if not is_object(message) or message.get("jsonrpc") != "2.0":
        raise InvalidMessage("the server sent a message that is not JSON-RPC")
    return message


async def parse_message(tenant: TenantId, raw: bytes) -> Message:
    """Parse one message; a large one in a thread.

    Raises:
        InvalidMessage: as for `read_message`.
        ResultBusy: too many large messages and results are in work.
    """
    return await run_large(tenant, len(raw), read_message, raw)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """True if the value is a JSON object."""
    return isinstance(value, dict)


def is_response(message: Message) -> bool:
    """True if the message is a response, with a result or an error."""
    return "method" not in message and ("result" in message or "error" in message)


def result_of(message: Message) -> dict[str, Any]:
    """Return the result object of a response.

    Raises:
        RemoteRefusal: the response is an error.
        LiveSourceFailed: the response has neither a result object nor an error object.
    """
    error = message.get("error")
    if is_object(error):
        raise RemoteRefusal(error)
    result = message.get("result")
    if not is_object(result):
        raise LiveSourceFailed("the server sent a response without a result object")
    return result


def refuse_missing(refusal: RemoteRefusal) -> None:
    """Raise CapabilityMissing if the server refused the request because its client lacks a capability (2026-07-28)."""
    details = refusal.details
    wanted = details.get("requiredCapabilities") if is_object(details) else None
    if refusal.number != _CAPABILITY_MISSING or not is_object(wanted):
        return
    capability = next((name for name in _CAPABILITIES if is_object(wanted.get(name))), None)
    if capability == "elicitation" and is_object(wanted[capability].get("url")):
        capability = "elicitation.url"
    if capability is not None:  # other errors are not about capabilities of the client
        raise CapabilityMissing(f"the live source needs the client's capability {capability}", capability=capability)


def refuse_unknown(refusal: RemoteRefusal, method: str) -> NoReturn:
    """Raise NotFound if the refusal means that the primitive does not exist; otherwise raise the refusal.

    The specification has no error code for unknown tools and prompts, so the server's message decides.
    """
    is_named = method in {"tools/call", "prompts/get", "resources/read"}
    if is_named and (refusal.number == _RESOURCE_NOT_FOUND or _UNKNOWN.search(refusal.words[:MAX_QUOTED_LENGTH])):
        raise NotFound(
            f"the live source has no primitive of this name; its message: {quote(refusal.words)}"
        ) from refusal
    raise refusal


def error_of(error: GatewayError, number: int) -> dict[str, object]:
    """Return the JSON-RPC error object that refuses a server request."""
    return {"code": number, "message": error.message}


def show(text: str, limit: int = MAX_QUOTED_LENGTH) -> str:
    """Return the text with unprintable characters escaped, truncated to `limit`."""
    shown = "".join(sign if sign.isprintable() else "\ufffd" for sign in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def quote(text: str) -> str:
    """Return a string of the server in quotes, escaped and truncated."""
    return f"'{show(text)}'"
