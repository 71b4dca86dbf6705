"""The definition of a generated tool: description, title, annotations, safety, and its bytes in `tools/list`."""

from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec
import orjson
from msgspec.structs import replace

from gateway.domain.json_access import as_object, encode_exact
from gateway.domain.listed.output_schema import loose_output_schema
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import FULL_INPUT_META, digest_input
from gateway.openapi.document.json_access import clean_text, list_at
from gateway.openapi.operation.descriptions import cut
from gateway.openapi.operation.input_schema import InputSchema
from gateway.openapi.operation.limits import (
    COMPACT_TOOL_BYTES,
    DETAILS_TOOL_BYTES,
    LIST_BYTES,
    MAX_BRIEF_LENGTH,
    MAX_TAG_LENGTH,
    MAX_TAGS,
    TOOL_BYTES,
)
from gateway.openapi.operation.list_budget import ListBudget, ShortenedSchema
from gateway.openapi.operation.methods import is_idempotent, method_safety
from gateway.openapi.operation.operations import Operation
from gateway.openapi.schema.components import Components

_NOTE = '{}: `get_endpoint_details` with the operation "{}" returns them in full.'
"""The last paragraph of a shortened tool's description; the overlay of an override preserves it."""

_OUTPUT = b'"outputSchema"'


class ToolText(msgspec.Struct, frozen=True, kw_only=True):
    """The name, title and description of a tool."""

    name: str
    title: str
    description: str


class Omission(StrEnum):
    """A part that a listed definition omits, as import reports name it."""

    OUTPUT = "the output schema"
    DESCRIPTIONS = "descriptions of nested arguments"
    PARTS = "deeply nested parts of the arguments"
    ENDS = "the ends of long descriptions of arguments"


class ListedTool(msgspec.Struct, frozen=True, kw_only=True):
    """The listed definition of a tool.

    If its input schema is shortened, `input_schema` is the full one, and `compact` is a smaller form for a list that is
    too large.
    """

    definition: bytes
    complete_bytes: int
    input_schema: bytes | None = None
    compact: "ListedTool | None" = None
    omitted: tuple[Omission, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """A note for the import report on the parts that the listed definition omits."""
        if not self.omitted:
            return ()
        *others, last = self.omitted
        parts = f"{', '.join(others)} and {last}" if others else last
        verb = "is" if self.omitted == (Omission.OUTPUT,) else "are"
        sizes = f"{len(self.definition)} bytes instead of {self.complete_bytes}"
        return (f"{parts} {verb} omitted from the tool list: {sizes}",)


def define_tool(text: ToolText, operation: Operation, schema: bytes, *, output: bytes | None = None) -> bytes:
    """Encode the definition of a tool as compact JSON; `output` is its encoded output schema, if it has one."""
    return encode_exact(_members(text, operation, schema, output))


def define_within_budget(
    text: ToolText, operation: Operation, schema: InputSchema, components: Components, *, output: bytes | None
) -> ListedTool:
    """Define a tool in at most `TOOL_BYTES`, unless the names of its arguments alone need more.

    A larger tool is listed without its output schema; if it is still too large, also with a shortened input schema.
    """
    complete = define_tool(text, operation, schema.text, output=output)
    if _listed_bytes(complete) <= TOOL_BYTES:
        return ListedTool(definition=complete, complete_bytes=len(complete))
    omitted = () if output is None else (Omission.OUTPUT,)
    without_output = complete if output is None else define_tool(text, operation, schema.text)
    if len(without_output) <= TOOL_BYTES:
        return ListedTool(definition=without_output, complete_bytes=len(complete), omitted=omitted)
    budget = ListBudget(schema.arguments, schema.needed, components)
    reserve = ShortenedSchema(text=b"{}", lacks_parts=True)
    fixed_bytes = len(_define_shortened(text, operation, reserve, full=schema.text))

    def shortened(size: int) -> ListedTool:
        found = budget.shorten(size - fixed_bytes)
        return ListedTool(
            definition=_define_shortened(text, operation, found, full=schema.text),
            complete_bytes=len(complete),
            input_schema=schema.text,
            omitted=(*omitted, *_omitted_from(found)),
        )

    return replace(shortened(TOOL_BYTES), compact=shortened(COMPACT_TOOL_BYTES))


def _members(text: ToolText, operation: Operation, schema: bytes, output: bytes | None) -> dict[str, object]:
    is_read_only = safety_of(operation) is Safety.SAFE
    names: dict[str, object] = {"name": text.name, "title": text.title} if text.title else {"name": text.name}
    return names | {
        "description": text.description,
        "inputSchema": orjson.Fragment(schema),
        **({} if output is None else {"outputSchema": orjson.Fragment(output)}),
        "annotations": {
            "readOnlyHint": is_read_only,
            "destructiveHint": not is_read_only,
            "idempotentHint": is_idempotent(operation.method),
            "openWorldHint": True,
        },
    }


def _define_shortened(text: ToolText, operation: Operation, schema: ShortenedSchema, *, full: bytes) -> bytes:
    """Encode the definition of a tool that lists a shortened schema.

    The digest of the full schema is part of the definition, so that a change of an unlisted part also changes it.
    """
    described = replace(text, description=f"{text.description}\n\n{_note(text.name, _omitted_from(schema))}")
    members = _members(described, operation, schema.text, None)
    return encode_exact(members | {"_meta": {FULL_INPUT_META: digest_input(full)}})


def _omitted_from(schema: ShortenedSchema) -> tuple[Omission, ...]:
    return (Omission.DESCRIPTIONS, Omission.PARTS) if schema.lacks_parts else (Omission.DESCRIPTIONS,)


def _note(name: str, omitted: Collection[Omission]) -> str:
    """The note for agents on the omitted parts of the arguments."""
    if Omission.PARTS in omitted:
        return _NOTE.format('Parts of the arguments are omitted, often marked "…"', name)
    parts = ["some descriptions of nested arguments are omitted"] if Omission.DESCRIPTIONS in omitted else []
    parts += ['descriptions that end with "…" are cut'] if Omission.ENDS in omitted else []
    return _NOTE.format("; ".join(parts).capitalize(), name)


def shrink_list(tools: Mapping[str, ListedTool]) -> Mapping[str, ListedTool]:
    """Shrink definitions until the list fits in `LIST_BYTES`, or no step saves more.

    The steps are: omit output schemas, list compact definitions of shortened tools, cut the descriptions of arguments.
    Within a step, the tools with the largest savings are shrunk first.
    """
    listed = dict(tools)
    for shrink in (_without_output, _compacted, _with_brief_arguments):
        excess = sum(_listed_bytes(tool.definition) + 1 for tool in listed.values()) + DETAILS_TOOL_BYTES - LIST_BYTES
        if excess <= 0:
            break
        # a tool is shrunk again when it is chosen, because all smaller definitions at once take megabytes
        saved = {name: _saved_bytes(tool, shrink(tool)) for name, tool in listed.items()}
        for name in sorted(saved, key=lambda name: (-saved[name], name)):
            if excess <= 0 or saved[name] <= 0:
                break
            excess -= saved[name]
            listed[name] = shrink(listed[name])
    return listed


def _saved_bytes(tool: ListedTool, shrunk: ListedTool) -> int:
    return 0 if shrunk is tool else _listed_bytes(tool.definition) - _listed_bytes(shrunk.definition)


def _listed_bytes(definition: bytes) -> int:
    """The bytes of a definition with its output schema in the form that is listed, which is longer."""
    if _OUTPUT not in definition:
        return len(definition)
    output = as_object(orjson.loads(definition).get("outputSchema"))
    growth = 0 if output is None else len(orjson.dumps(loose_output_schema(output))) - len(orjson.dumps(output))
    return len(definition) + max(growth, 0)


def _without_output(tool: ListedTool) -> ListedTool:
    definition = orjson.loads(tool.definition)
    if definition.pop("outputSchema", None) is None:
        return tool
    return replace(tool, definition=encode_exact(definition), omitted=(*tool.omitted, Omission.OUTPUT))


def _compacted(tool: ListedTool) -> ListedTool:
    return tool if tool.compact is None else tool.compact


def _with_brief_arguments(tool: ListedTool) -> ListedTool:
    """Cut the descriptions of the tool's arguments to `MAX_BRIEF_LENGTH` characters."""
    definition = orjson.loads(tool.definition)
    schema = definition["inputSchema"]
    full = encode_exact(schema) if tool.input_schema is None else tool.input_schema
    for name, argument in schema["properties"].items():
        described = as_object(argument) or {}
        brief = cut(str(described.get("description", "")), MAX_BRIEF_LENGTH)
        if brief != described.get("description", ""):
            schema["properties"][name] = {**described, "description": brief}
    omitted = (*tool.omitted, Omission.ENDS)
    words = definition["description"] if tool.input_schema is None else definition["description"].rpartition("\n\n")[0]
    definition["description"] = f"{words}\n\n{_note(definition['name'], omitted)}"
    definition["_meta"] = {FULL_INPUT_META: digest_input(full)}
    return replace(tool, definition=encode_exact(definition), input_schema=full, omitted=omitted)


def safety_of(operation: Operation) -> Safety:
    """Return the safety of the document's hint or, without one, of the method.

    `read_hints` never accepts a hint below the method's safety.
    """
    return operation.hints.safety or method_safety(operation.method)


def list_tags(operation: Operation) -> tuple[str, ...]:
    """Return the operation's tags, which profiles use for selection: at most 50, each cut to 100 characters."""
    named = [tag for tag in list_at(operation.node, "tags") if isinstance(tag, str)]
    cleaned = dict.fromkeys(cut(clean_text(tag).strip(), MAX_TAG_LENGTH) for tag in named[:MAX_TAGS])
    return tuple(tag for tag in cleaned if tag)
