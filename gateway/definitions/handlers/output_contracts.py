"""Checks of a declared handler's results against the output contract of its primitive, before any call.

A text with placeholders is open: faults in it are ignored, and a `json` tree with open strings is not checked. A
refused result is invalid for all arguments. Results of `http` and `openapi` handlers are not checked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import orjson

from gateway.definitions.contract.contents import UNTYPED, declare_messages, validate_content, validate_contents
from gateway.definitions.contract.limits import MAX_BLOCKS
from gateway.definitions.contract.prompts import PromptDefinition
from gateway.definitions.contract.resources import ResourceDefinition, ResourceTemplateDefinition
from gateway.definitions.contract.tools import ToolDefinition
from gateway.definitions.handlers.specs import (
    HandlerSpec,
    IfStep,
    ReturnStep,
    StaticSpec,
    Step,
    StepsSpec,
    TemplateSpec,
)
from gateway.definitions.json_schema.validator import DeferredCheck, compile_output
from gateway.definitions.templates.budget import RenderingBudget
from gateway.definitions.templates.template import Tree, is_open
from gateway.definitions.templates.values import to_text
from gateway.domain.json_access import as_list, as_object, point
from gateway.errors import DefinitionInvalid, Fault, TemplateFailed

Definition = ToolDefinition | ResourceDefinition | ResourceTemplateDefinition | PromptDefinition

_OBJECT_MEMBERS = ("content", "resource")
"""Members that contain another object: the block of a message, the resource of a block."""

_NO_STRUCTURE = "the outputSchema requires structured content, which this result never has; {}"
_SCHEMA_MISMATCH = "does not match the outputSchema: {}"


def find_faults(definition: Definition, spec: HandlerSpec, where: str = "/handler") -> Sequence[Fault]:
    """Return the faults of each result that can never be valid, with pointers below `where`; empty if none is found."""
    match spec.action:
        case StaticSpec() as static:
            return _static_faults(definition, static, where)
        case TemplateSpec() as declared:
            return _result_faults(definition, declared, where)
        case StepsSpec() as listed:
            return _step_faults(definition, listed.steps, f"{where}/steps")
        case _:
            return ()


def with_text(block: Mapping[str, object]) -> dict[str, object]:
    """Return the block with each `text` converted to a string, also in inner objects, because a placeholder can yield
    another type.
    """
    found = dict(block)
    if "text" in found and not isinstance(found["text"], str):
        found["text"] = to_text(found["text"], RenderingBudget())
    for name in _OBJECT_MEMBERS:
        inner = as_object(found.get(name))
        if inner is not None:
            found[name] = with_text(inner)
    return found


def _static_faults(definition: Definition, spec: StaticSpec, where: str) -> Sequence[Fault]:
    if isinstance(definition, ResourceDefinition | ResourceTemplateDefinition):
        return _faults_below(definition, spec.contents, where + "/contents")
    schema_tool, pointer = _tool_with_schema(definition, spec.is_error), where + "/structuredContent"
    if schema_tool is not None and spec.structured_content is None:
        return [Fault(pointer=pointer, reason=_NO_STRUCTURE.format("add it"))]
    return _schema_violations(schema_tool, spec.structured_content, pointer)


def _step_faults(definition: Definition, steps: Sequence[Step], where: str) -> Sequence[Fault]:
    declared_results = list(_declared_results(steps, where))
    is_needed = not isinstance(definition, ToolDefinition) or definition.output_schema is not None
    if is_needed and not declared_results:
        return [Fault(pointer=where, reason="never return a result; add a step with return")]
    return [fault for pointer, declared in declared_results for fault in _result_faults(definition, declared, pointer)]


def _declared_results(steps: Sequence[Step], where: str) -> Iterator[tuple[str, TemplateSpec]]:
    for number, step in enumerate(steps):
        if isinstance(step, ReturnStep):
            yield f"{where}/{number}/return", step.result
        elif isinstance(step, IfStep):
            yield from _declared_results(step.then, f"{where}/{number}/if/then")
            yield from _declared_results(step.otherwise, f"{where}/{number}/if/else")


def _result_faults(definition: Definition, declared: TemplateSpec, where: str) -> Sequence[Fault]:
    schema_tool = _tool_with_schema(definition, declared.is_error)
    if declared.json is not None:
        return (
            _schema_violations(schema_tool, declared.json.source, where + "/json") if declared.json.is_constant else ()
        )
    name, tree = _listed(declared)
    found = (
        _type_faults(definition, declared, where)
        if tree is None
        else _tree_faults(definition, tree, where + point(name))
    )
    if schema_tool is None:
        return found
    return [*found, Fault(pointer=where + point(name), reason=_NO_STRUCTURE.format("return `json`"))]


def _listed(declared: TemplateSpec) -> tuple[str, Tree | None]:
    """Return the name and the tree of the field with the result; `("text", None)` if the result is one text."""
    fields = (("content", declared.content), ("contents", declared.contents), ("messages", declared.messages))
    return next(((name, tree) for name, tree in fields if tree is not None), ("text", None))


def _type_faults(definition: Definition, declared: TemplateSpec, where: str) -> Sequence[Fault]:
    if isinstance(definition, ToolDefinition | PromptDefinition) or definition.mime_type or declared.mime_type:
        return ()
    return [Fault(pointer=where + "/mimeType", reason=UNTYPED)]


def _tool_with_schema(definition: Definition, is_error: bool) -> ToolDefinition | None:
    """Return the tool if its output schema applies to the result; None without a schema, and for error results."""
    if not isinstance(definition, ToolDefinition) or definition.output_schema is None or is_error:
        return None
    return definition


def _tree_faults(definition: Definition, tree: Tree, where: str) -> Sequence[Fault]:
    """Return the faults of a list of blocks. Each block is validated alone, because one error has at most 20 faults."""
    blocks = as_list(tree.source) or ()
    if len(blocks) > MAX_BLOCKS:
        return [Fault(pointer=where, reason=f"has more than {MAX_BLOCKS} elements")]
    return [
        fault for index, block in enumerate(blocks) for fault in _block_faults(definition, block, where + point(index))
    ]


def _block_faults(definition: Definition, block: object, where: str) -> Sequence[Fault]:
    """Return the faults of one block, except those in its open strings."""
    open_pointers: set[str] = set()
    closed = _without_open_texts(block, where, open_pointers)
    members = as_object(closed)
    try:
        found = _faults_below(definition, [closed if members is None else with_text(members)], where, index="/0")
    except TemplateFailed as wrong:
        return [Fault(pointer=where, reason=wrong.message)]
    return [
        fault
        for fault in found
        if not any(fault.pointer == pointer or fault.pointer.startswith(pointer + "/") for pointer in open_pointers)
    ]


def _without_open_texts(value: object, where: str, open_pointers: set[str]) -> object:
    """Return the value with each open text replaced by an empty one; add the pointers of these to `open_pointers`."""
    members, elements = as_object(value), as_list(value)
    if members is not None:
        return {
            name: _without_open_texts(member, where + point(name), open_pointers) for name, member in members.items()
        }
    if elements is not None:
        return [
            _without_open_texts(element, where + point(index), open_pointers) for index, element in enumerate(elements)
        ]
    if isinstance(value, str) and is_open(value):
        open_pointers.add(where)
        return ""
    return value


def _faults_below(definition: Definition, blocks: Sequence[object], where: str, *, index: str = "") -> Sequence[Fault]:
    """Return the faults of these blocks, with pointers below `where`; the prefix `index` is removed from each."""
    try:
        _validate(definition, list(blocks))
    except DefinitionInvalid as wrong:
        return [replace(fault, pointer=where + fault.pointer.removeprefix(index)) for fault in wrong.faults]
    return ()


def _validate(definition: Definition, blocks: list[object]) -> None:
    match definition:
        case ToolDefinition():
            validate_content(blocks)
        case PromptDefinition():
            declare_messages(blocks)
        case ResourceDefinition():
            validate_contents(blocks, uri=definition.uri, mime_type=definition.mime_type)
        case ResourceTemplateDefinition():
            validate_contents(blocks, uri=definition.template.lead + "x", mime_type=definition.mime_type)


def _schema_violations(schema_tool: ToolDefinition | None, structured: object, where: str) -> Sequence[Fault]:
    """Return the violations of the output schema; none if the check exceeds its budget."""
    found = () if schema_tool is None else compile_output(orjson.dumps(schema_tool.to_wire())).check(structured)
    if isinstance(found, DeferredCheck):
        return ()
    return [
        replace(fault, pointer=where + fault.pointer, reason=_SCHEMA_MISMATCH.format(fault.reason)) for fault in found
    ]
