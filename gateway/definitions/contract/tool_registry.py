"""In-memory store of tool definitions by name, each with an optional handler; independent of any server.

A tool is registered as a definition with its handler, or as a typed function, which is both.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, overload

from gateway.definitions.contract.metadata import Level, read_level
from gateway.definitions.contract.tools import ToolDefinition, validate_tool_definition
from gateway.definitions.typed.definitions import ToolHints, ToolShape
from gateway.definitions.typed.functions import CallContext, TypedFunction, read_function
from gateway.domain.tenancy.policy import Safety
from gateway.errors import DuplicateToolError


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTool:
    """A tool definition, its handler of any type, and its safety level if it was declared.

    `typed` is the signature of a tool that was registered as a typed function; its handler is that function.
    """

    definition: ToolDefinition
    handler: object = None
    safety: Safety | None = None
    typed: TypedFunction | None = None

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

    @overload
    def register(
        self,
        definition: ToolDefinition | ToolShape,
        handler: Callable[[Any], object] | None = None,
        *,
        safety: Level | None = None,
    ) -> ToolDefinition: ...
    @overload
    def register(
        self,
        definition: Callable[..., object],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolHints | None = None,
        safety: Level | None = None,
    ) -> ToolDefinition: ...
    def register(  # noqa: PLR0913  # each is a member of the definition or of the registration
        self,
        definition: ToolDefinition | ToolShape | Callable[..., object],
        handler: object = None,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolHints | None = None,
        safety: Level | None = None,
    ) -> ToolDefinition:
        """Add a tool: a definition or the protocol's object with a handler, or a typed function, which is both.

        The name, docstring and signature of a typed function are the definition, unless `name`, `title`, `description`
        or `annotations` replace a part; see `Gateway.tool`.

        Raises:
            ToolValidationError: the definition violates the contract.
            DefinitionInvalid: there is no such safety level.
            DuplicateToolError: the name is already registered; the registered tool stays unchanged.
            TypeError: a parameter of the typed function has no name, or a type without a JSON Schema. Or a definition
                was given with members that only a typed function takes.
            GatewayError: a gateway that serves this registry refuses the tool, as in `Gateway.register_tool`; the tool
                is not registered.
        """
        given = {"name": name, "title": title, "description": description, "annotations": annotations}
        typed = None
        if callable(definition):
            if handler is not None:
                raise TypeError("a typed function is its own handler: pass the function, or a definition and a handler")
            typed, handler = read_function(definition, CallContext), definition
            raw: object = typed.tool_definition(name, title=title, description=description, annotations=annotations)
        elif any(member is not None for member in given.values()):
            raise TypeError("name, title, description and annotations of a tool are members of its definition")
        else:
            raw = definition.to_wire() if isinstance(definition, ToolDefinition) else definition
        checked = validate_tool_definition(raw)
        level = None if safety is None else read_level(safety)
        return self._add(RegisteredTool(definition=checked, handler=handler, safety=level, typed=typed))

    def _add(self, tool: RegisteredTool) -> ToolDefinition:
        checked = tool.definition
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
