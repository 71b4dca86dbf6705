"""Primitives of a snapshot that are bound to their handlers, each on first use.

All profiles share the bound primitives, except profiles for which the policy has rules.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Generic, TypeVar

from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.domain.primitives import Primitive
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.handlers.binding import Binder
from gateway.registry.handler_kinds import kind_of

_OPERATION_KIND = "openapi"
_Item = TypeVar("_Item", bound=Tool | Primitive)
_Bound = TypeVar("_Bound")


class BindingCache(Generic[_Item, _Bound]):
    """Cache of the bound primitives of one family by name, each with the definition that it was bound from."""

    def __init__(self, bind: Callable[[Snapshot, _Item], Awaitable[_Bound]], snapshot: Snapshot) -> None:
        self.kept: dict[str, tuple[_Item, _Bound]] = {}
        self._bind: Callable[[Snapshot, _Item], Awaitable[_Bound]] = bind
        self._snapshot = snapshot

    async def get(self, item: _Item) -> _Bound:
        """Return the item bound to its handler; bind it on first use."""
        found = self.kept.get(item.name)
        if found is None:
            found = self.kept[item.name] = (item, await self._bind(self._snapshot, item))
        return found[1]

    def take(self, older: "BindingCache[_Item, _Bound]", present: Mapping[str, _Item], *, with_code: bool) -> None:
        """Copy the bound primitives that are unchanged in this snapshot; `with_code` includes Python primitives."""
        for name, (item, bound) in older.kept.items():
            if present.get(name) == item and _can_keep_binding(item, with_code=with_code):
                self.kept[name] = (item, bound)


class Bindings:
    """The bound primitives of one snapshot; unchanged ones are copied from the previous snapshot."""

    def __init__(
        self, snapshot: Snapshot, binder: Binder, previous: "Bindings | None" = None, *, profile: str = DEFAULT_PROFILE
    ) -> None:
        self.snapshot = snapshot
        self.tools = BindingCache(partial(binder.bind, profile=profile), snapshot)
        self.resources = BindingCache(partial(binder.bind_resource, profile=profile), snapshot)
        self.templates = BindingCache(partial(binder.bind_template, profile=profile), snapshot)
        self.prompts = BindingCache(partial(binder.bind_prompt, profile=profile), snapshot)
        if previous is not None and _has_same_context(previous.snapshot, snapshot):
            self._take(previous)

    def __len__(self) -> int:
        """Number of bound primitives."""
        return sum(len(cache.kept) for cache in (self.tools, self.resources, self.templates, self.prompts))

    def _take(self, older: "Bindings") -> None:
        now = self.snapshot
        with_code = now.code == older.snapshot.code
        self.tools.take(older.tools, now.by_name, with_code=with_code)
        self.resources.take(older.resources, _by_name(now.resources), with_code=with_code)
        self.templates.take(older.templates, _by_name(now.templates), with_code=with_code)
        self.prompts.take(older.prompts, _by_name(now.prompts), with_code=with_code)


def _has_same_context(then: Snapshot, now: Snapshot) -> bool:
    """True if policy, guardrails, HTTP origins and slug, which bound primitives use, are equal in both snapshots."""
    is_alike = then.policy == now.policy and then.http_origins == now.http_origins and then.slug == now.slug
    return is_alike and then.guardrails == now.guardrails  # guard: guardrail-rebound


def _can_keep_binding(item: Tool | Primitive, *, with_code: bool) -> bool:
    """True if an item with an unchanged definition can keep its bound handler.

    False for Python code of another generation, and for handlers that refer to operations, which may have changed.
    """
    if item.origin is PrimitiveOrigin.CODE:
        return with_code
    return kind_of(item) != _OPERATION_KIND


def _by_name(primitives: Sequence[Primitive]) -> Mapping[str, Primitive]:
    return {primitive.name: primitive for primitive in primitives}
