"""A store of tool definitions without a server: what is registered, under which name, and with what behind it."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.definitions.contract.tools import ToolDefinition, validate_tool_definition
from gateway.errors import DuplicateToolError


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTool:
    """A definition and whatever was registered beside it."""

    definition: ToolDefinition
    handler: object = None

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name


class ToolRegistry:
    """Definitions by name; each is checked in full when it is registered."""

    def __init__(self) -> None:
        self._tools: dict[str, RegisteredTool] = {}

    def register(self, definition: ToolDefinition | object, handler: object = None) -> ToolDefinition:
        """Add a tool, given as a definition or as the protocol's object.

        Raises:
            ToolValidationError: it breaks the contract.
            DuplicateToolError: its name is taken; the tool that has it stays.
        """
        raw = definition.to_wire() if isinstance(definition, ToolDefinition) else definition
        checked = validate_tool_definition(raw)
        tool = RegisteredTool(definition=checked, handler=handler)
        if self._tools.setdefault(checked.name, tool) is not tool:  # one step: threads may register at the same time
            raise DuplicateToolError(checked.name)
        return checked

    def get_all(self) -> tuple[ToolDefinition, ...]:
        """Every definition, in order of names."""
        return tuple(tool.definition for tool in self)

    def get_by_name(self, name: str) -> ToolDefinition | None:
        """The definition of this name; None when there is none."""
        tool = self._find(name)
        return None if tool is None else tool.definition

    def handler_of(self, name: str) -> object:
        """What was registered beside the tool of this name; None when there is nothing."""
        tool = self._find(name)
        return None if tool is None else tool.handler

    def to_mcp_tools(self) -> list[dict[str, object]]:
        """Every tool as the protocol's own object, in order of names."""
        return [tool.definition.to_wire() for tool in self]

    def _find(self, name: object) -> RegisteredTool | None:
        return self._tools.get(name) if isinstance(name, str) else None

    def __iter__(self) -> Iterator[RegisteredTool]:
        return iter(sorted(self._tools.values(), key=lambda tool: tool.name))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return self._find(name) is not None
