"""Return values of typed functions: text, None, bytes or any value that JSON can represent, as results."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from gateway.definitions.typed.functions import model_of
from gateway.domain.results import ABSENT, Result
from gateway.handlers.python import results


def result_of(returned: object) -> Result:
    """Return the result of a tool that returned a `Result`, text, None, or any value that JSON can represent.

    The caller has handled a mapping that is a result object itself.
    """
    if returned is None:
        return Result(content=())
    if isinstance(returned, str):
        return results.text(returned)
    if isinstance(returned, Result):
        return returned
    value = msgspec.to_builtins(returned, str_keys=True, enc_hook=_write_model)
    plain = results.json(value)
    return plain if isinstance(value, dict) else Result(content=plain.content)


def tool_result(returned: object) -> Mapping[str, object]:
    """Return the result object of a tool; see `result_of`."""
    result = result_of(returned)
    wire: dict[str, object] = {"content": list(result.content)}
    if result.structured is not ABSENT:
        wire["structuredContent"] = result.structured
    if result.is_error:
        wire["isError"] = True
    if result.meta is not None:
        wire["_meta"] = result.meta
    return wire


def content_of(returned: object) -> str | bytes:
    """Return the content of a resource that returned text, bytes, or any value that JSON can represent."""
    if isinstance(returned, str | bytes):
        return returned
    return msgspec.json.encode(returned, enc_hook=_write_model).decode()


def resource_result(returned: object, *, uri: str, mime_type: str | None) -> Mapping[str, object]:
    """Convert a string, bytes or any value that JSON can represent to the result object of a resource."""
    content: dict[str, object] = {"uri": uri}
    if mime_type is not None:
        content["mimeType"] = mime_type
    body = content_of(returned)
    if isinstance(body, bytes):
        return {"contents": [{**content, "blob": b64encode(body).decode()}]}
    return {"contents": [{**content, "text": body}]}


def prompt_result(returned: object) -> Mapping[str, object]:
    """Convert the string of one user message, or a list of messages, to the result object of a prompt."""
    if isinstance(returned, str):
        return {"messages": [{"role": "user", "content": {"type": "text", "text": returned}}]}
    return {"messages": list(cast("Sequence[Mapping[str, object]]", returned))}


def _write_model(value: object) -> object:
    model = model_of(type(value))
    return model.model_dump(cast("Any", value), mode="json")
