"""Headers and bodies of requests to an MCP URL in the protocol revision 2026-07-28, which has no sessions."""

import base64
from collections.abc import Mapping
from types import MappingProxyType

REVISION = "2026-07-28"
ACCEPT = "application/json, text/event-stream"


def request_headers(method: str, *, name: str | None = None) -> dict[str, str]:
    """Return the headers that this revision requires on every request, except the credential."""
    headers = {
        "Content-Type": "application/json",
        "Accept": ACCEPT,
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": method,
    }
    return headers if name is None else {**headers, "Mcp-Name": header_value(name)}


def request_body(
    method: str,
    params: Mapping[str, object] | None = None,
    *,
    capabilities: Mapping[str, object] = MappingProxyType({}),
) -> dict[str, object]:
    """Build a request with the required `_meta`."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientCapabilities": dict(capabilities),
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": meta}}


def header_value(text: str) -> str:
    """Encode the text as a header value: unchanged, or in base64 if it could be misread."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?")
    return text if is_plain else f"=?base64?{base64.b64encode(text.encode()).decode()}?="
