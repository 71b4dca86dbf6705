"""Definitions of prompts keep their contract."""

from typing import Any

import pytest

from gateway.definitions.contract.prompts import validate_prompt_definition
from gateway.errors import PromptValidationError


def prompt(**more: Any) -> dict[str, Any]:
    return {"name": "p"} | more


def test_a_prompt_is_listed_as_it_was_given() -> None:
    """MCP: name, arguments and all optional members (PRM-1)."""
    raw = prompt(
        title="T",
        description="D",
        arguments=[
            {"name": "a", "title": "A", "description": "The first.", "required": True},
            {"name": "b", "required": False},
            {"name": "c"},
        ],
        icons=[{"src": "https://example.com/i.png"}],
        _meta={"k": 1},
    )
    definition = validate_prompt_definition(raw)

    assert definition.to_wire() == raw
    assert definition.required_arguments == ("a",)
    assert validate_prompt_definition(prompt()).to_wire() == prompt()
    assert validate_prompt_definition(prompt(arguments=[])).to_wire() == prompt(arguments=[])


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        ({}, "/name"),
        (prompt(name="a b"), "/name"),
        (prompt(description=""), "/description"),
        (prompt(arguments={}), "/arguments"),
        (prompt(arguments=[5]), "/arguments/0"),
        (prompt(arguments=[{}]), "/arguments/0/name"),
        (prompt(arguments=[{"name": ""}]), "/arguments/0/name"),
        (prompt(arguments=[{"name": "a"}, {"name": "a"}]), "/arguments/1/name"),
        (prompt(arguments=[{"name": "a", "required": "yes"}]), "/arguments/0/required"),
        (prompt(arguments=[{"name": "a", "type": "string"}]), "/arguments/0/type"),
        (prompt(arguments=[{"name": f"a{number}"} for number in range(101)]), "/arguments"),
        (prompt(messages=[]), "/messages"),
        ("p", ""),
    ],
)
def test_a_broken_prompt_is_refused_where_it_is_broken(raw: object, pointer: str) -> None:
    """Ours: strict, each fault with its place (PRM-1)."""
    with pytest.raises(PromptValidationError) as caught:
        validate_prompt_definition(raw)

    assert pointer in [fault.pointer for fault in caught.value.faults]
