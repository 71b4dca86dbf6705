"""The registry of definitions is a pure store that keeps its promises."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import MappingProxyType
from typing import Any, Literal, cast

import pytest

from gateway.definitions.contract.tool_registry import RegisteredTool, Serve, ToolRegistry
from gateway.definitions.contract.tools import ToolDefinition, validate_tool_definition
from gateway.definitions.typed.definitions import ToolShape
from gateway.domain.tenancy.policy import Safety
from gateway.errors import DefinitionInvalid, DuplicateToolError, NameTaken, ToolValidationError


def raw(name: str) -> ToolShape:
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object", "properties": {}}}


def test_a_registered_definition_is_found() -> None:
    """Ours: by name, all together, and with the registered object (TDF-3)."""
    registry = ToolRegistry()
    handler: Any = object()
    definition = registry.register(raw("b"), handler)
    registry.register(validate_tool_definition(raw("a")))

    assert registry.get_by_name("b") is definition
    assert [tool.name for tool in registry.get_all()] == ["a", "b"]
    assert registry.handler_of("b") is handler
    assert registry.handler_of("a") is None
    assert [tool.name for tool in registry] == ["a", "b"]
    assert len(registry) == 2
    assert "a" in registry
    assert 5 not in registry


def test_an_absent_name_is_none() -> None:
    """Ours: looking never raises (TDF-3)."""
    registry = ToolRegistry()

    assert registry.get_by_name("x") is None
    assert registry.get_by_name(cast("str", ["x"])) is None
    assert registry.handler_of("x") is None
    assert registry.handler_of(cast("str", {})) is None
    assert registry.get_all() == ()
    assert registry.to_mcp_tools() == []


def test_tools_on_the_wire_are_exactly_the_protocols_and_sorted() -> None:
    """Ours: no extra fields, a stable order (TDF-3)."""
    registry = ToolRegistry()
    registry.register(raw("b"), handler=print)
    registry.register(raw("a"))

    assert registry.to_mcp_tools() == [raw("a"), raw("b")]


def test_a_taken_name_is_refused_and_the_first_tool_stays() -> None:
    """Ours: the error names the tool, the original stays unchanged (PRG-4)."""
    registry = ToolRegistry()
    one: Any = "first"
    first = registry.register(raw("a"), one)

    with pytest.raises(DuplicateToolError, match="'a'") as caught:
        registry.register({**raw("a"), "description": "Another."}, print)

    assert caught.value.tool_name == "a"
    assert isinstance(caught.value, NameTaken)
    assert registry.get_by_name("a") is first
    assert registry.handler_of("a") == "first"


def test_a_definition_of_code_is_checked_too() -> None:
    """Ours: nothing unchecked gets in."""
    registry = ToolRegistry()

    with pytest.raises(ToolValidationError):
        registry.register(ToolDefinition(name="", description="x", input_schema={}))
    assert len(registry) == 0


def test_one_of_many_threads_gets_a_name() -> None:
    """Ours: concurrent registrations of one name have one winner, whose tool stays (PRG-4)."""
    registry = ToolRegistry()
    start = Barrier(8)

    def register(number: Any) -> bool:
        start.wait()
        won = False
        for _ in range(20):
            try:
                registry.register(raw("a"), number)
            except DuplicateToolError:
                continue
            won = True
        return won

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            won = list(threads.map(register, range(8)))
    finally:
        sys.setswitchinterval(usual)

    assert won.count(True) == 1
    assert registry.handler_of("a") == won.index(True)


def test_a_definition_of_read_only_mappings_is_taken() -> None:
    """Ours: the types permit exactly the registrable definitions, and listed ones are plain JSON (TDF-3)."""
    registry = ToolRegistry()
    schema: Any = MappingProxyType({"type": "object", "properties": MappingProxyType({"n": {"type": "integer"}})})
    registry.register(ToolDefinition(name="a", description="Does a.", input_schema=schema))
    registry.register({**raw("b"), "inputSchema": schema})

    plain = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert [tool["inputSchema"] for tool in registry.to_mcp_tools()] == [plain, plain]


def test_a_registry_that_is_served_adds_a_tool_to_all_servers_or_to_none() -> None:
    """Ours: a later tool appears at once; a refusal is raised where the tool is registered (PRG-2, PRG-4)."""
    registry = ToolRegistry()
    registry.register(raw("a"), safety="safe")
    served: list[list[str]] = [[], [], []]

    def server(number: int, *refused: str) -> Serve:
        names = served[number]

        def serve(tool: RegisteredTool) -> Callable[[], object]:
            if tool.name in refused:
                raise DuplicateToolError(tool.name)
            names.append(tool.name)
            return lambda: names.remove(tool.name)

        return serve

    registry.attach(server(0))
    registry.attach(server(1, "c"))
    registry.register(raw("b"))
    with pytest.raises(DuplicateToolError, match="'c'"):
        registry.register(raw("c"))
    with pytest.raises(DuplicateToolError, match="'b'"):
        registry.attach(server(2, "b"))
    registry.register(raw("d"))

    assert served == [["a", "b", "d"], ["a", "b", "d"], []]
    assert [(tool.name, tool.safety) for tool in registry] == [("a", Safety.SAFE), ("b", None), ("d", None)]
    with pytest.raises(DefinitionInvalid, match="safety must be one of"):
        registry.register(raw("e"), safety="harmless")


def test_a_typed_function_is_definition_and_handler() -> None:
    """Ours: name, docstring, hints and defaults are the definition; the function itself is found (TDF-3, PRG-1)."""
    registry = ToolRegistry()

    def add(a: int, b: Literal[1, 2] = 2) -> int:
        """Adds two numbers."""
        return a + b

    defined = registry.register(add, safety="safe")
    registry.register(add, name="sum", title="Sum", description="Sums up.", annotations={"readOnlyHint": True})

    assert defined.to_wire() == {
        "name": "add",
        "description": "Adds two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"enum": [1, 2], "default": 2}},
            "required": ["a"],
            "additionalProperties": False,
        },
    }
    assert registry.handler_of("add") is add
    assert [(tool.name, tool.safety) for tool in registry] == [("add", Safety.SAFE), ("sum", None)]
    assert registry.to_mcp_tools()[1]["description"] == "Sums up."
    wrong: Any = registry.register
    with pytest.raises(TypeError, match="is its own handler"):
        wrong(add, print)
    with pytest.raises(TypeError, match="members of its definition"):
        wrong(raw("c"), print, name="d")
    with pytest.raises(DuplicateToolError):
        registry.register(add)
    assert len(registry) == 2
