"""The streaming hint: predicts if a request may send messages or questions before its response."""

from collections.abc import Mapping
from typing import Any

import structlog

from gateway.handlers.binding import BoundPrompt, BoundResource, BoundTool
from gateway.registry.registry import Registry

log = structlog.get_logger(__name__)


async def may_stream(method: str, params: Mapping[str, Any] | None, registry: Registry) -> bool:
    """True if the primitive may send messages before its response; False if it cannot be bound."""
    try:
        bound = await _bound(method, params or {}, registry)
    except Exception:
        log.debug("not_bound", method=method)
        return False  # running the request fails in the same way, and the client receives that error
    return bound is not None and bound.is_interactive


async def _bound(
    method: str, params: Mapping[str, Any], registry: Registry
) -> BoundTool | BoundPrompt | BoundResource | None:
    match method, params:
        case "tools/call", {"name": str(name)}:
            return await registry.tool(name)
        case "prompts/get", {"name": str(name)}:
            return await registry.prompt(name)
        case "resources/read", {"uri": str(uri)}:
            return await registry.resource(uri)
        case _:
            return None
