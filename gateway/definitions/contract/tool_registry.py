"""In-memory store of tool definitions by name, each with an optional handler; independent of any server."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.definitions.contract.tools import ToolDefinition, validate_tool_definition
from gateway.errors import DuplicateToolError


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTool:
    """A tool definition and its handler, of any type."""

    definition: ToolDefinition
    handler: object = None

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name


class ToolRegistry:
    """Tool definitions by name. Each definition is validated in full when it is registered."""

    def __init__(self) -> None:
        self._tools: dict[str, RegisteredTool] = {}

    def register(self, definition: ToolDefinition | object, handler: object = None) -> ToolDefinition:
        """Add a tool, given as a definition or as the protocol's object.

        Raises:
            ToolValidationError: the definition violates the contract.
            DuplicateToolError: the name is already registered; the registered tool stays unchanged.
        """
        raw = definition.to_wire() if isinstance(definition, ToolDefinition) else definition
        checked = validate_tool_definition(raw)
        tool = RegisteredTool(definition=checked, handler=handler)
        if self._tools.setdefault(checked.name, tool) is not tool:  # atomic, because several threads may register
            raise DuplicateToolError(checked.name)
        return checked

    def get_all(self) -> tuple[ToolDefinition, ...]:
        """All definitions, sorted by name."""
        return tuple(tool.definition for tool in self)

    def get_by_name(self, name: str) -> ToolDefinition | None:
        """The definition with this name; None if there is none."""
        tool = self._find(name)
        return None if tool is None else tool.definition

    def handler_of(self, name: str) -> object:
        """The handler registered with the tool of this name; None if there is none."""
        tool = self._find(name)
        return None if tool is None else tool.handler

    def to_mcp_tools(self) -> list[dict[str, object]]:
        """All tools as the protocol's objects, sorted by name."""
        return [tool.definition.to_wire() for tool in self]

    def _find(self, name: object) -> RegisteredTool | None:
        return self._tools.get(name) if isinstance(name, str) else None

    def __iter__(self) -> Iterator[RegisteredTool]:
        return iter(sorted(self._tools.values(), key=lambda tool: tool.name))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return self._find(name) is not None
