"""Headers of revision 2026-07-28 that mirror parts of a request: names, and arguments marked with `x-mcp-header`."""

import base64
import json
from typing import cast

from gateway.domain.http.headers import is_token
from gateway.upstream.live.mcp.messages import is_object

MIRRORED = "x-mcp-header"
_ENCODED = "=?base64?"


def header_value(text: str) -> str:
    """Return the text as a header value: unchanged, or in base64 if the plain form is unsafe or ambiguous."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith(_ENCODED)
    return text if is_plain else f"{_ENCODED}{base64.b64encode(text.encode()).decode()}?="


def mirrored_headers(schema: object, arguments: object) -> list[tuple[str, str]]:
    """Return the `Mcp-Param-…` headers of these arguments; invalid marks are ignored."""
    headers: list[tuple[str, str]] = []
    left: list[tuple[object, object]] = [(schema, arguments)]
    while left:
        inner, values = left.pop()
        properties = inner.get("properties") if is_object(inner) else None
        if not is_object(properties) or not is_object(values):
            continue
        for name, value in cast("dict[str, object]", values).items():
            declared = properties.get(name)
            token = declared.get(MIRRORED) if is_object(declared) else None
            if isinstance(value, str | int) and isinstance(token, str) and is_token(token):
                headers.append(
                    (f"Mcp-Param-{token}", header_value(value if isinstance(value, str) else json.dumps(value)))
                )
            left.append((declared, value))
    return headers
