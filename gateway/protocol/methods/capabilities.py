"""The capabilities of a connection: declared by `initialize` and `server/discover`, and enforced by the methods."""

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CompletionsCapability,
    LoggingCapability,
    PromptsCapability,
    ResourcesCapability,
    ServerCapabilities,
    ToolsCapability,
)

from gateway.domain.primitives import Family
from gateway.protocol.errors import Hidden
from gateway.registry.hiding_rules import absence_rule
from gateway.registry.registry import Registry


def capabilities_of(registry: Registry, *, notifies: bool = True) -> ServerCapabilities:
    """The server capabilities of a connection with this registry.

    Tools are always declared, even if there are none. Any other family without primitives is omitted. `notifies` is
    True if the server sends notifications of changed lists and resources.
    """
    changes = True if notifies else None
    return ServerCapabilities(
        tools=ToolsCapability(list_changed=changes),
        resources=ResourcesCapability(subscribe=changes, list_changed=changes) if has_resources(registry) else None,
        prompts=PromptsCapability(list_changed=changes) if registry.has(Family.PROMPT) else None,
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


def require_family(registry: Registry, family: Family, name: str, method: str) -> None:
    """Refuse a request for a primitive of a family that the profile does not show, as `require` does.

    Raises:
        Hidden: the profile shows no primitive of the family; the audit trail has the reason.
    """
    is_shown = has_resources(registry) if family is Family.RESOURCE else registry.has(family)
    if not is_shown:
        raise hidden(registry, family, name, "Method not found", rpc_code=METHOD_NOT_FOUND, method=method)


def hidden(
    registry: Registry, family: Family, name: str, text: str, *, rpc_code: int = INVALID_PARAMS, **more: object
) -> Hidden:
    """The error for a primitive that the registry does not show, with the reason for the audit trail."""
    return Hidden(text, absence_rule(registry, family, name), rpc_code=rpc_code, **more)
