"""Validation of a primitive without its catalog: its definition, its handler, and their consistency.

The functions have no side effects but may run long, so callers run them in a thread, before any transaction.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from gateway.catalog.primitives.references import find_references
from gateway.definitions.contract.prompts import PromptDefinition, validate_prompt_definition
from gateway.definitions.contract.resources import (
    ResourceDefinition,
    ResourceTemplateDefinition,
    validate_resource_definition,
    validate_resource_template_definition,
)
from gateway.definitions.contract.tools import validate_tool_definition
from gateway.definitions.field_reader import Faults
from gateway.definitions.handlers.output_contracts import Definition, find_faults
from gateway.definitions.handlers.parser import parse_handler
from gateway.definitions.handlers.safety import assess
from gateway.definitions.handlers.specs import HandlerSpec
from gateway.domain.json_text import decode_json
from gateway.domain.primitives import Family
from gateway.domain.tenancy.own_primitives import KEYS, Own
from gateway.errors import DefinitionInvalid, Fault, HandlerInvalid

_VALIDATE: Mapping[Family, Callable[[object], Definition]] = {
    Family.TOOL: validate_tool_definition,
    Family.RESOURCE: validate_resource_definition,
    Family.TEMPLATE: validate_resource_template_definition,
    Family.PROMPT: validate_prompt_definition,
}


def prepare(wanted: Own) -> Own:
    """Validate a wanted primitive and return it with the members that follow from its definition and handler.

    Raises:
        DefinitionInvalid: the definition or the handler violates its contract; the faults point into the body.
    """
    handler: object = decode_json(wanted.handler)
    definition, refusal = _read_definition(wanted.family, decode_json(wanted.definition))
    try:
        spec = parse_handler(handler, wanted.family, arguments=_completable_arguments(definition))
    except DefinitionInvalid as wrong:
        raise _combine(refusal, wrong) from wrong
    if definition is None or refusal is not None:
        raise _combine(refusal)
    _check_results(definition, spec)
    level, reasons = assess(spec)
    references = tuple(find_references(spec))
    found: dict[str, Any] = {
        KEYS[wanted.family]: _address(definition),
        "definition": orjson.dumps(definition.to_wire()),
        "handler": orjson.dumps(handler),
        "assessed": level,
        "safety_reasons": reasons,
        "references": references,
        "refers": tuple(sorted({stored for reference in references for stored in reference.stored})),
    }
    return replace(wanted, **found)


def _read_definition(family: Family, raw: object) -> tuple[Definition | None, DefinitionInvalid | None]:
    """The definition, or its error with pointers into the body."""
    try:
        return _VALIDATE[family](raw), None
    except DefinitionInvalid as wrong:
        found = wrong.faults or (Fault(pointer="", reason=wrong.message),)
        faults = [replace(fault, pointer=f"/definition{fault.pointer}") for fault in found]
        return None, type(wrong)(f"definition: {wrong.message}", faults=faults)


def _completable_arguments(definition: Definition | None) -> Sequence[str] | None:
    """Names of the arguments that may have completions; None if the definition does not determine them."""
    match definition:
        case PromptDefinition():
            return [argument.name for argument in definition.arguments or ()]
        case ResourceTemplateDefinition():
            return definition.template.variables
        case _:
            return None


def _address(definition: Definition) -> str:
    """The name, URI or URI template that identifies the primitive in its family."""
    match definition:
        case ResourceDefinition():
            return definition.uri
        case ResourceTemplateDefinition():
            return definition.uri_template
        case _:
            return definition.name


def _check_results(definition: Definition, spec: HandlerSpec) -> None:
    """Refuse a well-formed handler that can return no valid result."""
    faults = Faults()
    for fault in find_faults(definition, spec):
        faults.add(fault.pointer, fault.reason)
    faults.raise_as(HandlerInvalid, "handler")


def _combine(*refusals: DefinitionInvalid | None) -> DefinitionInvalid:
    """One error with the type and message of the first refusal, and the faults of all refusals."""
    text = [refusal for refusal in refusals if refusal is not None]
    faults = [fault for refusal in text for fault in refusal.faults]
    return type(text[0])(text[0].message, faults=faults)
