"""The capabilities of a connection: declared by `initialize` and `server/discover`, and enforced by the methods."""

from mcp.shared.exceptions import MCPError
from mcp_types import (
    METHOD_NOT_FOUND,
    CompletionsCapability,
    LoggingCapability,
    PromptsCapability,
    ResourcesCapability,
    ServerCapabilities,
    ToolsCapability,
)

from gateway.domain.primitives import Family
from gateway.registry.registry import Registry


def capabilities_of(registry: Registry) -> ServerCapabilities:
    """The server capabilities of a connection with this registry.

    Tools are always declared, even if there are none. Any other family without primitives is omitted.
    """
    return ServerCapabilities(
        tools=ToolsCapability(list_changed=True),
        resources=ResourcesCapability(subscribe=True, list_changed=True) if has_resources(registry) else None,
        prompts=PromptsCapability(list_changed=True) if registry.has(Family.PROMPT) else None,
        completions=CompletionsCapability() if registry.has_completions else None,
        logging=LoggingCapability() if registry.is_interactive else None,
    )


def has_resources(registry: Registry) -> bool:
    """True if the profile shows a resource or a resource template."""
    return registry.has(Family.RESOURCE) or registry.has(Family.TEMPLATE)


def require(claim: bool, method: str) -> None:
    """Refuse a method whose capability was not declared, like a method that does not exist.

    Raises:
        MCPError: `claim` is False.
    """
    if not claim:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", method)
