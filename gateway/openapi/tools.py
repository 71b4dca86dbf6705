"""What a generated tool says of itself: description, title, annotations, safety, and the bytes it is listed as."""

import orjson

from gateway.domain.policy import Safety
from gateway.openapi.inputs import InputSchema
from gateway.openapi.operations import Operation
from gateway.openapi.shapes import clean_text, is_true_at, list_at, text_at

_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "QUERY", "TRACE"))
_IDEMPOTENT_METHODS = _SAFE_METHODS | {"PUT", "DELETE"}
_LONGEST_DESCRIPTION = 2_000
_LONGEST_TITLE = 200
_LONGEST_TAG = 100
_MOST_TAGS = 50


def define_tool(name: str, operation: Operation, schema: InputSchema, *, output: bytes | None = None) -> bytes:
    """The tool as it is listed, as compact JSON; `output` is the schema of its results where it lists one."""
    title = _title(operation)
    named = {"name": name, "title": title} if title else {"name": name}
    return orjson.dumps(
        named
        | {
            "description": _description(operation),
            "inputSchema": orjson.Fragment(schema.text),
            **({} if output is None else {"outputSchema": orjson.Fragment(output)}),
            "annotations": {
                "readOnlyHint": operation.method in _SAFE_METHODS,
                "destructiveHint": operation.method not in _SAFE_METHODS,
                "idempotentHint": is_idempotent(operation.method),
                "openWorldHint": True,
            },
        }
    )


def is_idempotent(method: str) -> bool:
    """Whether sending the request twice does what sending it once does (RFC 9110)."""
    return method in _IDEMPOTENT_METHODS


def judge_safety(method: str) -> Safety:
    """How much harm the method can do before anybody says otherwise."""
    if method in _SAFE_METHODS:
        return Safety.SAFE
    return Safety.DANGEROUS if method == "DELETE" else Safety.MODERATE


def list_tags(operation: Operation) -> tuple[str, ...]:
    """The operation's tags, by which profiles select; so many and so long ones as anybody reads."""
    named = [tag for tag in list_at(operation.node, "tags") if isinstance(tag, str)]
    cleaned = dict.fromkeys(_cut(clean_text(tag).strip(), _LONGEST_TAG) for tag in named[:_MOST_TAGS])
    return tuple(tag for tag in cleaned if tag)


def _title(operation: Operation) -> str:
    return _cut(" ".join(clean_text(text_at(operation.node, "summary") or "").split()), _LONGEST_TITLE)


def _description(operation: Operation) -> str:
    summary, text = (clean_text(text_at(operation.node, key) or "") for key in ("summary", "description"))
    said = text if text.startswith(summary) else f"{summary}\n\n{text}".strip()
    said = said or clean_text(f"{operation.method} {operation.path}")
    return _cut(f"Deprecated. {said}" if is_true_at(operation.node, "deprecated") else said, _LONGEST_DESCRIPTION)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
