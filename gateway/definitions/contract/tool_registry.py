"""In-memory store of tool definitions by name, each with an optional handler; independent of any server."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from gateway.definitions.contract.metadata import Level, read_level
from gateway.definitions.contract.tools import ToolDefinition, validate_tool_definition
from gateway.domain.tenancy.policy import Safety
from gateway.errors import DuplicateToolError


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTool:
    """A tool definition, its handler of any type, and its safety level if it was declared."""

    definition: ToolDefinition
    handler: object = None
    safety: Safety | None = None

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name


Serve = Callable[[RegisteredTool], Callable[[], object]]
"""Adds a tool to a server and returns the function that removes it; raises an error if the server refuses the tool."""


class ToolRegistry:
    """Tool definitions by name. Each definition is validated in full when it is registered.

    A tool that is registered while gateways serve the registry is added to them before `register` returns.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tools: dict[str, RegisteredTool] = {}
        self._servers: tuple[Serve, ...] = ()

    def register(
        self, definition: ToolDefinition | object, handler: object = None, *, safety: Level | None = None
    ) -> ToolDefinition:
        """Add a tool, given as a definition or as the protocol's object.

        Raises:
            ToolValidationError: the definition violates the contract.
            DefinitionInvalid: there is no such safety level.
            DuplicateToolError: the name is already registered; the registered tool stays unchanged.
            GatewayError: a gateway that serves this registry refuses the tool, as in `Gateway.register_tool`; the tool
                is not registered.
        """
        raw = definition.to_wire() if isinstance(definition, ToolDefinition) else definition
        checked = validate_tool_definition(raw)
        level = None if safety is None else read_level(safety)
        tool = RegisteredTool(definition=checked, handler=handler, safety=level)
        with self._lock:
            if self._tools.setdefault(checked.name, tool) is not tool:
                raise DuplicateToolError(checked.name)
            servers = self._servers
        try:
            _add_all((serve, tool) for serve in servers)
        except BaseException:
            del self._tools[checked.name]
            raise
        return checked

    def attach(self, serve: Serve) -> None:
        """Add each tool to a server, those registered so far and all later ones.

        Raises:
            GatewayError: the server refuses one of the tools; none is added.
        """
        with self._lock:  # so each tool is either in this list, or added by its `register`
            tools = tuple(self)
            self._servers += (serve,)
        try:
            _add_all((serve, tool) for tool in tools)
        except BaseException:
            with self._lock:
                self._servers = tuple(one for one in self._servers if one is not serve)
            raise

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


def _add_all(additions: Iterable[tuple[Serve, RegisteredTool]]) -> None:
    """Add tools to servers, all or none."""
    with ExitStack() as undo:
        for serve, tool in additions:
            undo.callback(serve(tool))
        undo.pop_all()
