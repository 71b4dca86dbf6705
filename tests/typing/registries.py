"""Errors of type checkers for wrong tools in a registry: a line with `# expect` has one, all others none."""

import functools
from collections.abc import Mapping
from typing import Any, Literal

from gateway.embed import Context, ObjectSchema, Result, ToolDefinition, ToolRegistry, success, validate_tool_definition

registry = ToolRegistry()
SCHEMA: ObjectSchema = {"type": "object", "properties": {"text": {"type": "string"}}}


async def handler(context: Context) -> Result:
    return success({"tenant": context.tenant})


def typed(name: str, tone: Literal["kind", "plain"] = "kind", *, context: Context) -> str:
    """Greets."""
    return f"{name} {tone} {context.tenant}"


class Greeter:
    """Greets."""

    def __call__(self, name: str) -> str:
        return name

    def greet(self, name: str) -> str:
        return name


def no_parameter() -> str:
    return ""


registered: ToolDefinition = registry.register({"name": "a", "description": "x", "inputSchema": SCHEMA}, handler)
registry.register({"name": "b", "description": "x", "inputSchema": SCHEMA})
registry.register(registered, handler, safety="safe")
registry.register({"name": "c", "inputSchema": SCHEMA}, handler)  # expect
registry.register({"name": "d", "description": "x", "inputSchema": {"type": "array"}}, handler)  # expect
registry.register({"name": "e", "description": "x", "inputSchema": SCHEMA}, "not a function")  # expect
registry.register({"name": "f", "description": "x", "inputSchema": SCHEMA}, no_parameter)  # expect
registry.register({"name": "h", "description": "x", "inputSchema": SCHEMA}, handler, title="H")  # expect
registry.register(7)  # expect
registry.register("greet", typed)  # expect

registry.register(typed)
greeting: ToolDefinition = registry.register(typed, name="greet", title="Greet", safety="safe")
registry.register(Greeter())
registry.register(Greeter().greet, annotations={"readOnlyHint": True})
registry.register(functools.partial(typed, tone="plain"), name="plain")
registry.register(typed, handler)  # expect
registry.register(typed, name=7)  # expect
registry.register(typed, annotations={"readOnly": True})  # expect

received: Mapping[str, Any] = {"name": "own", "description": "x", "inputSchema": SCHEMA}
registry.register(validate_tool_definition(received), handler)
registry.register(received, handler)  # expect
