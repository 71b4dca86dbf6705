"""The definition of a generated tool: description, title, annotations, safety, and its bytes in `tools/list`."""

import orjson

from gateway.domain.tenancy.policy import Safety
from gateway.openapi.document.json_access import clean_text, is_true_at, list_at, text_at
from gateway.openapi.operation.input_schema import InputSchema
from gateway.openapi.operation.methods import is_idempotent, judge_safety
from gateway.openapi.operation.operations import Operation

_LONGEST_DESCRIPTION = 2_000
_LONGEST_TITLE = 200
_LONGEST_TAG = 100
_MOST_TAGS = 50


def define_tool(name: str, operation: Operation, schema: InputSchema, *, output: bytes | None = None) -> bytes:
    """Encode the definition of a tool as compact JSON; `output` is its encoded output schema, if it has one."""
    title = _title(operation)
    reads = safety_of(operation) is Safety.SAFE
    named = {"name": name, "title": title} if title else {"name": name}
    return orjson.dumps(
        named
        | {
            "description": _description(operation),
            "inputSchema": orjson.Fragment(schema.text),
            **({} if output is None else {"outputSchema": orjson.Fragment(output)}),
            "annotations": {
                "readOnlyHint": reads,
                "destructiveHint": not reads,
                "idempotentHint": is_idempotent(operation.method),
                "openWorldHint": True,
            },
        }
    )


def safety_of(operation: Operation) -> Safety:
    """Return the hinted safety, which `read_hints` never sets below the method's; without a hint, the method's."""
    return operation.hints.safety or judge_safety(operation.method)


def list_tags(operation: Operation) -> tuple[str, ...]:
    """Return the operation's tags, which profiles use for selection: at most 50, each cut to 100 characters."""
    named = [tag for tag in list_at(operation.node, "tags") if isinstance(tag, str)]
    cleaned = dict.fromkeys(_cut(clean_text(tag).strip(), _LONGEST_TAG) for tag in named[:_MOST_TAGS])
    return tuple(tag for tag in cleaned if tag)


def _title(operation: Operation) -> str:
    message = operation.hints.title or clean_text(text_at(operation.node, "summary") or "")
    return _cut(" ".join(message.split()), _LONGEST_TITLE)


def _description(operation: Operation) -> str:
    summary, text = (clean_text(text_at(operation.node, key) or "") for key in ("summary", "description"))
    message = text if text.startswith(summary) else f"{summary}\n\n{text}".strip()
    message = operation.hints.description or message or clean_text(f"{operation.method} {operation.path}")
    return _cut(f"Deprecated. {message}" if is_true_at(operation.node, "deprecated") else message, _LONGEST_DESCRIPTION)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
