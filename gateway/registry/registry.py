"""What one connection lists and finds: a pure function of tenant, what the credential may see, and revision."""

from dataclasses import dataclass
from typing import Any

from gateway.domain.principals import Principal
from gateway.domain.tools import Tool
from gateway.handlers.bind import BoundTool
from gateway.registry.build import View
from gateway.registry.cursors import Cursors

PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of tools, and the cursor of the next; None on the last."""

    tools: tuple[Tool, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Registry:
    """A snapshot bound to one principal and profile; building it is O(1)."""

    principal: Principal
    profile: str
    view: View
    cursors: Cursors

    @property
    def revision(self) -> int:
        """The revision of the catalog that this registry shows."""
        return self.view.snapshot.revision

    async def tool(self, name: str) -> BoundTool | None:
        """The tool of this name, ready to be called; None when there is none."""
        return await self.view.bound(name)

    def page(self, cursor: str | None) -> Page:
        """One page of tools in order of names.

        Raises:
            InvalidCursor: the cursor was not issued for this tenant, profile and list.
        """
        tenant = self.principal.tenant
        last = None if cursor is None else self.cursors.open(tenant, self.profile, "tools", cursor)
        found = self.view.after(last, PAGE + 1)
        shown = found[:PAGE]
        more = len(found) > PAGE
        return Page(
            tools=shown,
            next_cursor=self.cursors.mint(tenant, self.profile, "tools", shown[-1].name) if more else None,
        )

    def lists_the_same(self, other: "Registry") -> bool:
        """Whether a client of the one would be shown the same tools by the other."""
        mine, others = self.view.snapshot.tools, other.view.snapshot.tools
        return len(mine) == len(others) and all(
            before.definition == after.definition for before, after in zip(mine, others, strict=True)
        )

    def definition(self, tool: Tool) -> dict[str, Any]:
        """The tool's definition as an object; shared, so never to be changed."""
        return self.view.definition(tool)

    def mirrored_schema(self, name: str) -> dict[str, Any] | None:
        """The input schema of a tool that mirrors arguments into headers (`x-mcp-header`); None for all others."""
        tool = self.view.snapshot.by_name.get(name)
        if tool is None or b'"x-mcp-header"' not in tool.definition:
            return None
        schema: dict[str, Any] = self.view.definition(tool)["inputSchema"]
        return schema
