"""The strict contract of tool definitions; unknown fields are refused."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.definitions.contract.limits import MAX_TITLE_LENGTH, MAX_TOOL_NAME_LENGTH
from gateway.definitions.contract.metadata import read_description, read_icons, read_meta, read_title
from gateway.definitions.contract.mirrored_headers import check_mirrored_headers
from gateway.definitions.field_reader import Faults, FieldReader, copy_untrusted
from gateway.definitions.json_schema.checks import check_root, check_schema
from gateway.definitions.json_values import copy_containers
from gateway.domain.calls.mcp_tasks import TaskSupport
from gateway.errors import ToolValidationError

NAME = re.compile(r"[A-Za-z0-9_./-]{1,64}")
FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution", "icons", "_meta")
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool as clients see it. Its schemas are listed unchanged, with all keywords."""

    name: str
    description: str
    input_schema: Mapping[str, object]
    title: str | None = None
    output_schema: Mapping[str, object] | None = None
    annotations: Mapping[str, object] | None = None
    execution: Mapping[str, object] | None = None
    icons: tuple[Mapping[str, object], ...] | None = None
    meta: Mapping[str, object] | None = None

    def to_wire(self) -> dict[str, object]:
        """Return the definition in wire format. Its lists and dictionaries are copies."""
        fields: dict[str, object] = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
            "execution": self.execution,
            "icons": None if self.icons is None else list(self.icons),
            "_meta": self.meta,
        }
        return {name: copy_containers(value) for name, value in fields.items() if value is not None}


def validate_tool_definition(raw: object) -> ToolDefinition:
    """Validate a tool definition in wire format and return it.

    Raises:
        ToolValidationError: the object violates the contract. The message names the first invalid field; each fault has
        a JSON Pointer.
    """
    faults = Faults()
    reader = FieldReader(copy_untrusted(raw, ToolValidationError, "definition"), FIELDS, where="", faults=faults)
    reader.require("name", "description", "inputSchema")
    definition = ToolDefinition(
        name=_name(reader) or "",
        title=read_title(reader),
        description=read_description(reader) or "",
        input_schema=_input_schema(reader) or {},
        output_schema=_output_schema(reader),
        annotations=_annotations(reader),
        execution=_execution(reader),
        icons=read_icons(reader),
        meta=read_meta(reader),
    )
    faults.raise_as(ToolValidationError, "definition")
    return definition


def _name(reader: FieldReader) -> str | None:
    name = reader.string("name", max_length=MAX_TOOL_NAME_LENGTH)
    if name is not None and not NAME.fullmatch(name):
        reader.refuse("name", "must consist of letters, digits and the characters _ . / -")
    return name


def _input_schema(reader: FieldReader) -> Mapping[str, object] | None:
    schema = reader.members("inputSchema")
    if schema is not None:
        check_root(schema, reader.at("inputSchema"), reader.faults)
        tree = check_schema(schema, reader.at("inputSchema"), reader.faults)
        if tree is not None:
            check_mirrored_headers(tree, reader.at("inputSchema"), reader.faults)
    return schema


def _output_schema(reader: FieldReader) -> Mapping[str, object] | None:
    schema = reader.members("outputSchema")
    if schema is not None:
        check_schema(schema, reader.at("outputSchema"), reader.faults)
    return schema


def _annotations(reader: FieldReader) -> Mapping[str, object] | None:
    annotations = reader.nested("annotations", ("title", *HINTS))
    if annotations is None:
        return None
    annotations.string("title", max_length=MAX_TITLE_LENGTH)
    for hint in HINTS:
        annotations.flag(hint)
    return reader.members("annotations")


def _execution(reader: FieldReader) -> Mapping[str, object] | None:
    execution = reader.nested("execution", ("taskSupport",))
    if execution is None:
        return None
    execution.choice("taskSupport", tuple(TaskSupport))
    return reader.members("execution")
