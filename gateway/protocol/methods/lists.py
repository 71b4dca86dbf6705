"""The four list methods: a page as an SDK result, and the same page as rendered bytes.

The bytes are rendered once for each page and protocol revision, through the SDK's own validation. All clients with the
same page and revision receive the same bytes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp.server.context import HandlerResult
from mcp_types import PaginatedRequestParams
from mcp_types import methods as surface
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.domain.primitives import Family, Primitive
from gateway.domain.tools import Tool
from gateway.protocol.methods.capabilities import has_resources, require
from gateway.protocol.request_context import CURRENT_REQUEST, SdkContext
from gateway.registry.paging import ListPage
from gateway.registry.registry import Registry

LIST_TTL_MS = 1000


@dataclass(frozen=True, slots=True)
class _List:
    """The family of one list method, and the name of the member that contains the list."""

    family: Family
    member: str


LISTS: Final[Mapping[str, _List]] = {
    "tools/list": _List(Family.TOOL, "tools"),
    "resources/list": _List(Family.RESOURCE, "resources"),
    "resources/templates/list": _List(Family.TEMPLATE, "resourceTemplates"),
    "prompts/list": _List(Family.PROMPT, "prompts"),
}


async def respond_with_list(ctx: SdkContext, params: PaginatedRequestParams) -> HandlerResult:
    """Return one page of the list that the method names.

    Raises:
        MCPError: the family was not declared.
        InvalidCursor: the cursor does not belong to this list.
    """
    registry = CURRENT_REQUEST.get().registry
    require(is_declared(registry, ctx.method), ctx.method)
    page = registry.page(LISTS[ctx.method].family, params.cursor)
    return _result(ctx.method, page, ctx.protocol_version)


def is_declared(registry: Registry, method: str) -> bool:
    """True if the family that the method lists was declared."""
    match LISTS[method].family:
        case Family.TOOL:
            return True
        case Family.PROMPT:
            return registry.has(Family.PROMPT)
        case _:
            return has_resources(registry)


def render_list(registry: Registry, method: str, cursor: str | None, version: str) -> bytes:
    """Render the members of the result as JSON, for a family that was declared.

    Raises:
        InvalidCursor: the cursor does not belong to this list.
        ValueError: a definition violates the schema of the revision.
    """
    page = registry.page(LISTS[method].family, cursor)
    found = page.rendered.get(version)
    if found is None:
        shaped = surface.serialize_server_result(method, version, _result(method, page, version))
        written = json.dumps(shaped, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        found = page.rendered[version] = written.encode()[1:-1]
    return found


def _result(method: str, page: ListPage[Tool] | ListPage[Primitive], version: str) -> dict[str, Any]:
    is_modern = version in MODERN_PROTOCOL_VERSIONS
    shown = page.objects if is_modern else [_for_handshake(item) for item in page.objects]
    result: dict[str, Any] = {
        LISTS[method].member: shown,
        "resultType": "complete",
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "private",
    }
    if page.next_cursor is not None:
        result["nextCursor"] = page.next_cursor
    return result


def _for_handshake(item: dict[str, Any]) -> dict[str, Any]:
    """Omit an output schema that does not describe an object; before 2026-07-28 it had to."""
    schema = item.get("outputSchema")
    if schema is None or (isinstance(schema, dict) and schema.get("type") == "object"):  # pyright: ignore[reportUnknownMemberType]
        return item
    return {name: value for name, value in item.items() if name != "outputSchema"}
