"""The primitives of a snapshot that one profile shows: four lists, readable URIs, and declared capabilities."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import structlog

from gateway.catalog.snapshots.access_table import AccessTable
from gateway.catalog.snapshots.listed_form import ToolListing, added_templates, added_tools, form_of
from gateway.catalog.snapshots.primitive_policies import policy_of
from gateway.catalog.snapshots.query_coverage import added_queries, asked_queries
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.definitions.live.page_uris import is_page
from gateway.definitions.policy.paths import readings_of_uri
from gateway.definitions.uri.templates import UriTemplate
from gateway.domain.primitives import Family, Primitive
from gateway.domain.queries import Queried
from gateway.domain.tenancy.policy import Decision
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE, Profile
from gateway.domain.tenancy.selection import Selection
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.errors import ResourceValidationError
from gateway.handlers.python.registry import PythonHandlers
from gateway.openapi.query.tools import DETAILS
from gateway.registry.handler_kinds import has_completions, kind_of
from gateway.registry.paging import DEFAULT_LIMITS, PagedList, PageLimits
from gateway.registry.query_sources import find_queried

log = structlog.get_logger(__name__)

_LOGGING_KIND = "steps"
_LOGGING_ORIGINS = frozenset({PrimitiveOrigin.CODE, PrimitiveOrigin.LIVE})
_EXPRESSION = re.compile(r"\{[^{}]*+\}")
_Item = TypeVar("_Item", bound=Tool | Primitive)


class VisiblePrimitives:
    """The primitives of a snapshot that a selection contains; all primitives without a selection."""

    def __init__(
        self,
        snapshot: Snapshot,
        code: PythonHandlers | None,
        selection: Selection | None = None,
        *,
        profile: str = DEFAULT_PROFILE,
        rules: int | None = None,
        limits: PageLimits = DEFAULT_LIMITS,
    ) -> None:
        self.rules = rules
        """The access rules that restrict the primitives; None if there are none."""
        self._chosen = selection
        if rules is not None:
            selection = _restrict(snapshot.access, rules, selection)
        stored = snapshot.profiles.get(profile)
        self._is_asked = bool(asked_queries(stored))
        chosen = _with_queries(_select(snapshot.tools, selection), snapshot, selection, stored, rules=rules)
        tools = _with_details(chosen, snapshot, rules)
        self.listing = ToolListing(snapshot.names, form_of(stored))
        """The form in which tools are listed."""
        shown_tools = _with_added(tools, added_tools(stored), snapshot, rules)
        self.tools = PagedList(shown_tools, self.listing, limits=limits)
        self.resources = PagedList(_select(snapshot.resources, selection), limits=limits)
        templates = _select(snapshot.templates, selection)
        self.templates = PagedList(sorted((*templates, *added_templates(stored)), key=_name), limits=limits)
        self.prompts = PagedList(_select(snapshot.prompts, selection), limits=limits)
        self._snapshot = snapshot
        self._selection = selection
        self._profile = profile
        self._code = code
        # guard: live-template-last
        self._routes = [_Route(primitive) for primitive in sorted(templates, key=_is_live)]

    def of(self, family: Family) -> PagedList[Tool] | PagedList[Primitive]:
        """The list of a family."""
        match family:
            case Family.TOOL:
                return self.tools
            case Family.RESOURCE:
                return self.resources
            case Family.TEMPLATE:
                return self.templates
            case Family.PROMPT:
                return self.prompts

    def lists_the_same(self, other: "VisiblePrimitives", family: Family) -> bool:
        """True if both list the same definitions of a family."""
        if family is Family.TOOL:
            return self.listing.lists_the_same(self.tools.items, other.listing, other.tools.items)
        mine: Sequence[Tool | Primitive] = self.of(family).items
        theirs: Sequence[Tool | Primitive] = other.of(family).items
        return len(mine) == len(theirs) and all(
            one.definition == another.definition for one, another in zip(mine, theirs, strict=True)
        )

    def renamed(self, old: str) -> Tool | None:
        """The shown tool that has this name as an unexpired alias."""
        found = self._snapshot.called(old)
        return None if found is None else self.tools.by_name.get(found.name)

    def of_page(self, remote: str) -> Tool | None:
        """The only shown tool that a page of a live source may call by this name, which it has at its source."""
        names = [name for name in self._snapshot.page_tools.get(remote, ()) if name in self.tools.by_name]
        return self.tools.by_name[names[0]] if len(names) == 1 else None  # guard: live-page-tool

    def unlisted(self, name: str) -> Tool | None:
        """The tool with this name or alias, if an override hides it and the selection contains it."""
        found = self._snapshot.unlisted.get(name) or self._snapshot.called(name)
        if found is None or found.name not in self._snapshot.unlisted:
            return None
        return found if self._selection is None or self._selection(found) else None

    def templates_for(self, uri: str) -> Iterator[Primitive]:
        """The resource templates that match this URI, sorted by name; those of live sources come last."""
        return (route.primitive for route in self._routes_for(uri))

    @cached_property
    def variant(self) -> str:
        """Suffix that binds a cursor to the access rules; empty if no rule restricts the lists."""
        return "" if self.rules is None else f":{self._snapshot.access.digest(self.rules)}"

    def _routes_for(self, uri: str) -> Iterator["_Route"]:
        """The template routes that match this URI; empty if access rules hide its resource, or forbid the URI."""
        # guard: live-page-template
        routes = self._routes if not is_page(uri) else [one for one in self._routes if not _is_live(one.primitive)]
        fitting = (route for route in routes if route.fits(uri))
        if self.rules is None:
            return fitting
        if not self._hidden_uris.isdisjoint(map(str.casefold, readings_of_uri(uri))):  # guard: access-hidden-uri
            return iter(())
        access, rules = self._snapshot.access, self.rules
        return (route for route in fitting if not access.denies_uri(rules, route.primitive, uri))  # guard: access-uri

    @cached_property
    def _hidden_uris(self) -> frozenset[str]:
        """The case-folded URIs of the resources that access rules hide."""
        assert self.rules is not None
        hidden = (one for one in self._snapshot.resources if not self._snapshot.access.allows(self.rules, one))
        return frozenset(one.name.casefold() for one in hidden)

    def permits_linked(self, resource: Primitive) -> bool:
        """True if the profile and the access rules permit a resource that no list contains."""
        if self._chosen is not None and not self._chosen(resource):  # guard: linked-of-the-profile
            return False
        if self.rules is None:
            return True
        is_hidden = not self._hidden_uris.isdisjoint(map(str.casefold, readings_of_uri(resource.name)))
        return not is_hidden and self._snapshot.access.allows_linked(self.rules, resource)

    def can_read(self, uri: str) -> bool:
        """True if the URI names a shown resource, or matches a shown template, that the policy does not deny."""
        found = self.resources.by_name.get(uri)
        if found is not None:
            return self._allows(found, None, {})
        route = next(self._routes_for(uri), None)
        return route is not None and self._allows(route.primitive, uri, route.variables(uri))

    def _allows(self, primitive: Primitive, uri: str | None, variables: Mapping[str, object]) -> bool:
        return policy_of(self._snapshot, primitive, self._profile, uri).judge(variables).decision is not Decision.DENY

    @cached_property
    def queried(self) -> Sequence[Queried]:
        """The sources of the query tools, with the operations that the selection contains."""
        return find_queried(self._snapshot, self.tools.items, self._selection, is_asked=self._is_asked)

    @cached_property
    def is_interactive(self) -> bool:
        """True if a shown primitive may send log messages: it is Python code, a list of steps, or of a live source."""
        return any(item.origin in _LOGGING_ORIGINS or kind_of(item) == _LOGGING_KIND for item in self._own())

    @cached_property
    def has_completions(self) -> bool:
        """True if a prompt or resource template suggests values."""
        return any(self._is_completed(item) for item in (*self.prompts.items, *self.templates.items))

    def _is_completed(self, item: Primitive) -> bool:
        if item.origin is PrimitiveOrigin.LIVE:  # its source completes arguments, or returns no values
            return True
        if item.origin is not PrimitiveOrigin.CODE or self._code is None:
            return has_completions(item)
        found = self._code.find(item.family, item.name, self._snapshot.slug)
        return found is not None and found.complete is not None

    def _own(self) -> Iterator[Tool | Primitive]:
        """The shown primitives that are not imported operations."""
        yield from (tool for tool in self.tools.items if tool.origin is not PrimitiveOrigin.SOURCE)
        for listing in (self.resources, self.templates, self.prompts):
            yield from listing.items


class _Route:
    """One resource template; it is parsed when a URI first contains all of its literal text."""

    __slots__ = ("_literal_prefix", "_literals", "_template", "primitive")

    def __init__(self, primitive: Primitive) -> None:
        self.primitive = primitive
        begins, *others = _EXPRESSION.split(primitive.name)
        self._literal_prefix: str | None = begins
        self._literals = tuple(other for other in others if other)
        self._template: UriTemplate | None = None

    def fits(self, uri: str) -> bool:
        """True if the template expands to this URI for some values."""
        if self._literal_prefix is None or not uri.startswith(self._literal_prefix):
            return False
        for literal in self._literals:  # a cheap check: among many templates, most are skipped here
            if literal not in uri:
                return False
        if self._template is None:
            self._template = self._read()
        return self._template is not None and self._template.match(uri) is not None

    def variables(self, uri: str) -> Mapping[str, str]:
        """The variables of the template in a URI for which `fits` is true."""
        return {} if self._template is None else self._template.match(uri) or {}

    def _read(self) -> UriTemplate | None:
        try:
            return UriTemplate.parse(self.primitive.name)
        except ResourceValidationError as error:  # an older version of the gateway accepted the template
            self._literal_prefix = None
            log.warning("template_unreadable", template=self.primitive.name, reason=error.message)
            return None


def _restrict(access: AccessTable, rules: int, selection: Selection | None) -> Selection:
    """Restrict a selection to the primitives that access rules show."""

    def shows(item: Tool | Primitive) -> bool:
        return access.allows(rules, item) and (selection is None or selection(item))

    return shows


def _is_live(primitive: Primitive) -> bool:
    return primitive.origin is PrimitiveOrigin.LIVE


def _with_queries(
    tools: Sequence[Tool],
    snapshot: Snapshot,
    selection: Selection | None,
    profile: Profile | None,
    *,
    rules: int | None,
) -> Sequence[Tool]:
    """The shown tools, and the query tools that the profile names or needs."""
    if selection is None:
        return tools
    needed = added_queries(profile, snapshot, selection)
    if rules is not None:
        needed = [tool for tool in needed if snapshot.access.allows(rules, tool)]  # guard: access-queries
    return sorted((*tools, *needed), key=_name) if needed else tools


def _with_details(tools: Sequence[Tool], snapshot: Snapshot, rules: int | None) -> Sequence[Tool]:
    """The shown tools, and `get_endpoint_details` if a shown tool lists a shortened input schema and refers to it."""
    details = snapshot.by_name.get(DETAILS)
    if details is None or details in tools or not any(tool.is_shortened for tool in tools):
        return tools
    if rules is not None and snapshot.access.denies(rules, details):  # guard: access-details
        return tools
    return sorted((*tools, details), key=_name)


def _with_added(tools: Sequence[Tool], added: Sequence[Tool], snapshot: Snapshot, rules: int | None) -> Sequence[Tool]:
    """The shown tools, with those that the profile adds; a tool of the tenant with such a name takes precedence."""
    more = [tool for tool in added if tool.name not in snapshot.by_name]
    if rules is not None:
        more = [tool for tool in more if not snapshot.access.denies(rules, tool)]  # guard: access-results
    return sorted((*tools, *more), key=_name) if more else tools


def _name(item: Tool | Primitive) -> str:
    return item.name


def _select(items: Iterable[_Item], selection: Selection | None) -> Sequence[_Item]:
    return tuple(item for item in items if selection is None or selection(item))
