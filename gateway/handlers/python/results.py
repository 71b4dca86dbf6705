"""Shortcuts for results of Python handlers."""

from base64 import b64encode

import msgspec

from gateway.domain.results import Result


def success(value: object) -> Result:
    """Return a successful result: the value as structured content and as text."""
    return json(value)


def error(code: str, message: str, data: object = None) -> Result:
    """Return an error result: the message is text for the model; code, message and data are in `_meta.error`."""
    failure: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        failure["data"] = data
    return Result(content=({"type": "text", "text": message},), is_error=True, meta={"error": failure})


def text(value: str) -> Result:
    """Return one block of text."""
    return Result(content=({"type": "text", "text": value},))


def json(value: object) -> Result:
    """Return one JSON value, as structured content and as text.

    Raises:
        TypeError, ValueError: the value is not JSON.
    """
    return Result(content=({"type": "text", "text": msgspec.json.encode(value).decode()},), structured=value)


def image(content: bytes, mime_type: str = "image/png") -> Result:
    """Return one image."""
    return Result(content=({"type": "image", "data": b64encode(content).decode(), "mimeType": mime_type},))


def audio(content: bytes, mime_type: str = "audio/wav") -> Result:
    """Return one audio clip."""
    return Result(content=({"type": "audio", "data": b64encode(content).decode(), "mimeType": mime_type},))


def embed(uri: str, content: str | bytes, mime_type: str | None = None) -> Result:
    """Return one embedded resource: text as it is, bytes as a blob."""
    resource: dict[str, object] = {"uri": uri}
    if isinstance(content, str):
        resource |= {"mimeType": mime_type or "text/plain", "text": content}
    else:
        resource |= {"mimeType": mime_type or "application/octet-stream", "blob": b64encode(content).decode()}
    return Result(content=({"type": "resource", "resource": resource},))
