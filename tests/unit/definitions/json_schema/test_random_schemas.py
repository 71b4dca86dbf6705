"""Random schemas of own tools, with every keyword in every form: registered or refused with words, never a crash."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.catalog.overrides.overlay import overlay
from gateway.catalog.overrides.validation import pinned_faults
from gateway.catalog.snapshots.field_argument import with_fields
from gateway.definitions.contract.tools import validate_tool_definition
from gateway.definitions.json_schema.dialects import compile_schema
from gateway.definitions.json_schema.metered_schema import MeteredSchema
from gateway.definitions.json_schema.nearest_faults import nearest_faults
from gateway.definitions.json_schema.tree import SchemaTree
from gateway.definitions.json_schema.validator import DeferredCheck, compile_input, compile_output
from gateway.errors import ToolValidationError
from tests.support.examples import at_least
from tests.support.overrides import make_changes
from tests.support.random_schemas import DIALECTS, NAMES, RandomSchemas
from tests.support.snapshots import custom

SEEDS = st.integers(0, 2**40)


def _random_tool(chance: Random) -> tuple[dict[str, Any], RandomSchemas]:
    made = RandomSchemas(chance, oddity=chance.choice((0, 0, 0.03)))
    schema = made.object_schema() | {"$defs": made.definitions()}
    if chance.random() < 0.5:
        schema["$schema"] = chance.choice(DIALECTS)
    tool = {"name": "t", "description": "d", "inputSchema": schema}
    if chance.random() < 0.3:
        tool["outputSchema"] = made.object_schema()
    return tool, made


def _values(made: RandomSchemas, chance: Random) -> Iterator[dict[str, Any]]:
    yield {}
    for _ in range(4):
        yield {name: made.value() for name in NAMES if chance.random() < 0.6}


@settings(max_examples=at_least(400))
@given(seed=SEEDS)
def test_every_schema_is_refused_with_words_or_judges_as_the_library_does(seed: int) -> None:
    """Ours: no keyword in any form of any dialect makes an internal error, at registration or at a call (TDF-2)."""
    chance = Random(seed)
    tool, made = _random_tool(chance)
    try:
        validate_tool_definition(tool)
    except ToolValidationError:
        return
    text = msgspec.json.encode(tool)
    schema, validator = tool["inputSchema"], compile_input(text)
    plain = compile_schema(schema, asserts_formats=False)
    metered = MeteredSchema(schema, SchemaTree(schema), asserts_formats=False)
    for value in _values(made, chance):
        is_valid = plain.is_valid(value)
        found = validator.check(value)
        if isinstance(found, DeferredCheck):
            found = validator.check_unbounded(value, msgspec.json.encode(value))
        assert (found == ()) is is_valid, value
        assert all(fault.reason for fault in found)
        assert metered.is_valid(value, 10**8) is is_valid, value
        assert all(fault.reason for fault in nearest_faults(schema, value))
        collected = metered.violations(value, 10**6)
        assert collected is None or _kinds(collected) == _kinds(plain.iter_errors(value)), value
        pinned_faults(text, value)
    if "outputSchema" in tool:
        compile_output(text).check(made.value())


def _kinds(errors: Any) -> list[str]:
    return sorted(f"{error.kind.name} {error.instance_path}" for error in errors)


@settings(max_examples=at_least(60))
@given(seed=SEEDS)
def test_every_schema_can_be_listed_with_overrides_and_fields(seed: int) -> None:
    """Ours: a listed schema is derived from any accepted one (OAS-6)."""
    chance = Random(seed)
    tool, made = _random_tool(chance)
    try:
        validate_tool_definition(tool)
    except ToolValidationError:
        return
    text = msgspec.json.encode(tool)
    changed = overlay(replace(custom("t"), definition=text), make_changes(pinned={"a": made.value()}))

    assert compile_input(changed.definition)
    assert b'"_fields"' in with_fields(text)


@pytest.mark.parametrize("types", [["string", "null"], ["array", "null"], "string", "object", None])
def test_unique_items_of_several_types_are_checked(types: Any) -> None:
    """JSON Schema: `type` is a name or a list of names, also below `uniqueItems` (TDF-2)."""
    items = {} if types is None else {"type": types}
    schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True, "items": items}}}
    validator = compile_input(msgspec.json.encode({"inputSchema": schema}))

    assert validator.check({}) == ()
    assert validator.check({"a": list[object]()}) == ()
