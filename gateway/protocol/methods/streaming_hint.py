"""Whether a request may be told or asked something before its answer; of most this is known before they run."""

from collections.abc import Mapping
from typing import Any

import structlog

from gateway.handlers.binding import BoundPrompt, BoundResource, BoundTool
from gateway.registry.registry import Registry

log = structlog.get_logger(__name__)


async def may_stream(method: str, params: Mapping[str, Any] | None, registry: Registry) -> bool:
    """Whether what is asked for may say something before its answer; what does not even begin says nothing."""
    try:
        bound = await _bound(method, params or {}, registry)
    except Exception:
        log.debug("not_bound", method=method)
        return False  # it fails again where the client is told
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
