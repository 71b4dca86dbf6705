"""What a connection can use: said when it asks what there is, and held when it asks for something else."""

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
    """What a connection with this registry can use.

    What a profile has none of is left out; tools are there always, even when there are none yet.
    """
    return ServerCapabilities(
        tools=ToolsCapability(list_changed=True),
        resources=ResourcesCapability(subscribe=True, list_changed=True) if has_resources(registry) else None,
        prompts=PromptsCapability(list_changed=True) if registry.has(Family.PROMPT) else None,
        completions=CompletionsCapability() if registry.completes else None,
        logging=LoggingCapability() if registry.talks else None,
    )


def has_resources(registry: Registry) -> bool:
    """Whether there is anything that could be read: a resource, or a template of some."""
    return registry.has(Family.RESOURCE) or registry.has(Family.TEMPLATE)


def require(claim: bool, method: str) -> None:
    """Answer for a family that was not declared as for a method that does not exist.

    Raises:
        MCPError: the claim does not hold.
    """
    if not claim:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", method)
