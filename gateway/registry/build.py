"""How a registry is made: the compiled view of a snapshot is shared, binding it to a principal costs nothing."""

from bisect import bisect_right
from collections import OrderedDict
from typing import Any

import msgspec

from gateway.catalog.snapshots import Snapshot
from gateway.domain.identifiers import TenantId
from gateway.domain.tools import Tool
from gateway.handlers.bind import Binder, BoundTool


class View:
    """A snapshot with what was compiled of it so far: bound tools and definitions as objects, each on first use."""

    def __init__(self, snapshot: Snapshot, binder: Binder, previous: "View | None" = None) -> None:
        self.snapshot = snapshot
        self.names = [tool.name for tool in snapshot.tools]
        self._binder = binder
        self._bound: dict[str, BoundTool] = {} if previous is None else previous.still_good_for(snapshot)
        self._objects: dict[str, dict[str, Any]] = {}

    @property
    def compiled_count(self) -> int:
        """How many tools and definitions were compiled so far."""
        return len(self._bound) + len(self._objects)

    async def bound(self, name: str) -> BoundTool | None:
        """The tool of this name, ready to be called; None when there is none."""
        found = self._bound.get(name)
        if found is None:
            tool = self.snapshot.by_name.get(name)
            if tool is None:
                return None
            found = self._bound[name] = await self._binder.bind(self.snapshot.tenant, tool, self.snapshot.policy)
        return found

    def definition(self, tool: Tool) -> dict[str, Any]:
        """The tool's definition as an object, keyword for keyword; shared, so never to be changed."""
        found = self._objects.get(tool.name)
        if found is None:
            found = self._objects[tool.name] = msgspec.json.decode(tool.definition)
        return found

    def after(self, last: str | None, limit: int) -> tuple[Tool, ...]:
        """The tools that follow a name, in order of names."""
        start = 0 if last is None else bisect_right(self.names, last)
        return self.snapshot.tools[start : start + limit]

    def still_good_for(self, snapshot: Snapshot) -> dict[str, BoundTool]:
        """The bound tools that a newer snapshot need not compile again."""
        if snapshot.policy != self.snapshot.policy:
            return {}
        return {name: bound for name, bound in self._bound.items() if snapshot.by_name.get(name) == bound.tool}


class Views:
    """The views of this replica, one per tenant, replaced when the snapshot is."""

    def __init__(self, binder: Binder, *, capacity: int = 256) -> None:
        self._binder = binder
        self._capacity = capacity
        self._views: OrderedDict[TenantId, View] = OrderedDict()

    def of(self, snapshot: Snapshot) -> View:
        """The view of this snapshot, the same object for every connection that holds it."""
        found = self._views.get(snapshot.tenant)
        if found is not None and found.snapshot is snapshot:
            return found
        if found is not None and found.snapshot.revision > snapshot.revision:
            return View(snapshot, self._binder)
        made = self._views[snapshot.tenant] = View(snapshot, self._binder, found)
        self._views.move_to_end(snapshot.tenant)
        if len(self._views) > self._capacity:
            self._views.popitem(last=False)
        return made

    def forget(self, tenant: TenantId) -> None:
        """Drop what is kept of a tenant."""
        self._views.pop(tenant, None)
