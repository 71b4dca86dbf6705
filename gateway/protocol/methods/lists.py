"""The four list methods: a page as rendered bytes, which bypass the SDK.

The bytes are rendered once for each page and protocol revision, through the SDK's own validation. All clients with the
same page and revision receive the same bytes. A large page is rendered in a thread, in parts, so that no step holds the
event loop for long.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog
from mcp.server.context import HandlerResult
from mcp_types import PaginatedRequestParams
from mcp_types import methods as surface
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.domain.fairness.thread_kinds import LIST_PAGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.listed.definition import written
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tools import Tool
from gateway.protocol.methods.capabilities import has_resources, require
from gateway.protocol.request_context import CURRENT_REQUEST, SdkContext
from gateway.registry.paging import ListPage
from gateway.registry.registry import Registry

log = structlog.get_logger(__name__)

LIST_TTL_MS = 1000

_INLINE = 32 * 1024
"""Bytes of definitions that are rendered on the event loop: a few milliseconds."""

_PART = 25
"""Definitions that the SDK validates in one step, during which no other thread runs."""


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
    """Return an empty page in place of one of the list that the method names; the rendered page bypasses the SDK.

    The SDK would decode, validate and encode up to 4 MiB on the event loop.

    Raises:
        RuntimeError: the transport sends results of the SDK only.
        MCPError: the family was not declared.
        InvalidCursor, LimitExceeded: as for `render_list`.
    """
    context = CURRENT_REQUEST.get()
    require(is_declared(context.registry, ctx.method), ctx.method)
    if context.finished is None:
        raise RuntimeError("the page of a list must bypass the SDK")
    context.finished.members = await render_list(context.registry, ctx.method, params.cursor, ctx.protocol_version)
    return {LISTS[ctx.method].member: [], **_ENVELOPE}


def is_declared(registry: Registry, method: str) -> bool:
    """True if the family that the method lists was declared."""
    match LISTS[method].family:
        case Family.TOOL:
            return True
        case Family.PROMPT:
            return registry.has(Family.PROMPT)
        case _:
            return has_resources(registry)


async def render_list(registry: Registry, method: str, cursor: str | None, version: str) -> bytes:
    """Render the members of the result as JSON, for a family that was declared.

    Raises:
        InvalidCursor: the cursor does not belong to this list.
        LimitExceeded: the tenant's pages, or those of all tenants, are not rendered in time.
    """
    page = registry.page(LISTS[method].family, cursor)
    found = page.rendered.get(version)
    if found is not None:
        return found
    async with page.rendering:
        if version not in page.rendered:
            if page.size <= _INLINE:
                page.rendered[version] = _render(page, method, version)
            else:
                party = registry.principal.tenant
                page.rendered[version] = await run_in_thread(LIST_PAGES, party, _render, page, method, version)
        return page.rendered[version]


_Page = ListPage[Tool] | ListPage[Primitive]
_ENVELOPE: Final[dict[str, Any]] = {"resultType": "complete", "ttlMs": LIST_TTL_MS, "cacheScope": "private"}


def _render(page: _Page, method: str, version: str) -> bytes:
    member = LISTS[method].member
    parts = [
        part
        for start in range(0, len(page.items), _PART)
        if (part := _render_part(page, page.items[start : start + _PART], method, version))
    ]
    cursor = {} if page.next_cursor is None else {"nextCursor": page.next_cursor}
    shaped = surface.serialize_server_result(method, version, {member: [], **_ENVELOPE, **cursor})
    ends = written({name: value for name, value in shaped.items() if name != member})[1:-1]
    return b"".join((b'"', member.encode(), b'":[', b",".join(parts), b"]", b"," if ends else b"", ends))


def _render_part(page: _Page, items: Sequence[Any], method: str, version: str) -> bytes:
    """Render some items of a page; an item that violates the schema of the revision is left out of the list."""
    member = LISTS[method].member
    try:
        shown = page.objects(items)
        if version not in MODERN_PROTOCOL_VERSIONS:
            shown = [_for_handshake(item) for item in shown]
        shaped = surface.serialize_server_result(method, version, {member: shown, **_ENVELOPE})
        return written(shaped[member])[1:-1]
    except ValueError as error:
        if len(items) == 1:
            log.warning("definition_not_listed", name=items[0].name, version=version, reason=str(error)[:500])
            return b""
        return b",".join(part for one in items if (part := _render_part(page, [one], method, version)))


def _for_handshake(item: dict[str, Any]) -> dict[str, Any]:
    """Omit an output schema that does not describe an object; before 2026-07-28 it had to."""
    schema = item.get("outputSchema")
    if schema is None or (isinstance(schema, dict) and schema.get("type") == "object"):  # pyright: ignore[reportUnknownMemberType]
        return item
    return {name: value for name, value in item.items() if name != "outputSchema"}
