"""The definition of a generated tool: description, title, annotations, safety, and its bytes in `tools/list`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson

from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import FULL_INPUT_META, digest_input
from gateway.openapi.document.json_access import clean_text, list_at
from gateway.openapi.operation.descriptions import cut
from gateway.openapi.operation.input_schema import InputSchema
from gateway.openapi.operation.list_budget import LIST_BYTES, TIGHT_BYTES, TOOL_BYTES, shorten_input
from gateway.openapi.operation.methods import is_idempotent, judge_safety
from gateway.openapi.operation.operations import Operation
from gateway.openapi.schema.components import Components

SHORTENED_NOTE = (
    'Arguments marked "…" are shortened: `get_endpoint_details` with the operation "{}" returns them in full.'
)
_FRAME_BYTES = 4_096
"""Bytes of a list beside the tools of its operations: the tool for details."""

_LONGEST_TAG = 100
_MOST_TAGS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWords:
    """The name, title and description of a tool."""

    name: str
    title: str
    description: str


def define_tool(
    words: ToolWords, operation: Operation, schema: bytes, *, output: bytes | None = None, full: bytes | None = None
) -> bytes:
    """Encode the definition of a tool as compact JSON; `output` is its encoded output schema, if it has one.

    `full` is the input schema that calls are validated against, if `schema` is shortened. Its digest is part of the
    definition: a change of what is not listed is a change of the tool, too.
    """
    reads = safety_of(operation) is Safety.SAFE
    named = {"name": words.name, "title": words.title} if words.title else {"name": words.name}
    shown = words.description
    return orjson.dumps(
        named
        | {
            "description": shown if full is None else f"{shown}\n\n{SHORTENED_NOTE.format(words.name)}",
            "inputSchema": orjson.Fragment(schema),
            **({} if output is None else {"outputSchema": orjson.Fragment(output)}),
            "annotations": {
                "readOnlyHint": reads,
                "destructiveHint": not reads,
                "idempotentHint": is_idempotent(operation.method),
                "openWorldHint": True,
            },
            **({} if full is None else {"_meta": {FULL_INPUT_META: digest_input(full)}}),
        }
    )


def fit_tool(
    words: ToolWords, operation: Operation, schema: InputSchema, components: Components, *, output: bytes | None
) -> "FittedTool":
    """Define a tool within the budget of lists: first without its output schema, then with a shortened input schema."""
    whole = define_tool(words, operation, schema.text, output=output)
    if len(whole) <= TOOL_BYTES:
        return FittedTool(definition=whole, whole_bytes=len(whole))
    plain = define_tool(words, operation, schema.text)
    if len(plain) <= TOOL_BYTES:
        return FittedTool(definition=plain, whole_bytes=len(whole))
    frame = len(define_tool(words, operation, b"{}", full=schema.text))
    listed, tight = (
        define_tool(
            words,
            operation,
            shorten_input(schema.arguments, schema.needed, components, room=size - frame),
            full=schema.text,
        )
        for size in (TOOL_BYTES, TIGHT_BYTES)
    )
    return FittedTool(definition=listed, whole_bytes=len(whole), input_schema=schema.text, tight=tight)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTool:
    """A definition as it is listed; if its input schema is shortened, also the full one, and a tighter definition."""

    definition: bytes
    whole_bytes: int
    input_schema: bytes | None = None
    tight: bytes | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Parts that are left out of the list, for the report."""
        if self.whole_bytes == len(self.definition):
            return ()
        what = "its output schema is" if self.input_schema is None else "deep parts of its arguments are"
        sizes = f"it would have {self.whole_bytes} bytes there, and has {len(self.definition)}"
        return (f"{what} left out of the list: {sizes}",)


def fit_list(tools: Mapping[str, FittedTool]) -> Mapping[str, FittedTool]:
    """Return the tools that change so that the list is within `LIST_BYTES`, or as near to it as tight tools are."""
    excess = sum(len(tool.definition) + 1 for tool in tools.values()) + _FRAME_BYTES - LIST_BYTES
    saved = {name: len(tool.definition) - len(tool.tight) for name, tool in tools.items() if tool.tight is not None}
    changed: dict[str, FittedTool] = {}
    for name in sorted(saved, key=lambda name: (-saved[name], name)):
        if excess <= 0 or saved[name] <= 0:
            break
        excess -= saved[name]
        changed[name] = replace(tools[name], definition=tools[name].tight or b"")
    return changed


def safety_of(operation: Operation) -> Safety:
    """Return the hinted safety, which `read_hints` never sets below the method's; without a hint, the method's."""
    return operation.hints.safety or judge_safety(operation.method)


def list_tags(operation: Operation) -> tuple[str, ...]:
    """Return the operation's tags, which profiles use for selection: at most 50, each cut to 100 characters."""
    named = [tag for tag in list_at(operation.node, "tags") if isinstance(tag, str)]
    cleaned = dict.fromkeys(cut(clean_text(tag).strip(), _LONGEST_TAG) for tag in named[:_MOST_TAGS])
    return tuple(tag for tag in cleaned if tag)
