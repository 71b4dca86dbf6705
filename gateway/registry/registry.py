"""Registry of one connection: lists and finds the primitives of a tenant, profile and catalog revision."""

from collections.abc import Sequence
from typing import Any

import msgspec

from gateway.calls.structured_once import replace_duplicate_text
from gateway.catalog.snapshots.access_table import AccessVerdict
from gateway.domain.identifiers import LiveSourceId
from gateway.domain.primitives import Family, Primitive
from gateway.domain.queries import Queried
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tools import Tool
from gateway.handlers.binding import BoundPrompt, BoundResource, BoundTemplate, BoundTool
from gateway.handlers.result_reader import is_result_uri
from gateway.registry.cursors import Cursors
from gateway.registry.paging import ListPage
from gateway.registry.views import SnapshotView
from gateway.registry.visibility import VisiblePrimitives


class Registry(msgspec.Struct, frozen=True):
    """A view of a snapshot, bound to one principal and profile; building it is O(1)."""

    principal: Principal
    profile: str
    view: SnapshotView
    cursors: Cursors

    @property
    def revision(self) -> int:
        """The revision of the catalog that this registry shows."""
        return self.view.snapshot.revision

    @property
    def policy_version(self) -> int:
        """The version of the tenant's policy in that revision."""
        return self.view.snapshot.policy.version

    @property
    def shown(self) -> VisiblePrimitives:
        """The primitives that the profile and the access rules permit, shared by all connections with the same view."""
        return self.view.shown(self.profile, self.principal)

    @property
    def sends_once(self) -> bool:
        """True if the profile sends JSON results only as structured content, without the text copy."""
        profile = self.view.snapshot.profiles.get(self.profile)
        return profile is not None and profile.structured_once

    @property
    def selects_fields(self) -> bool:
        """True if the profile gives imported tools the argument `_fields`."""
        profile = self.view.snapshot.profiles.get(self.profile)
        return profile is not None and profile.selects_fields

    @property
    def summary_threshold(self) -> int:
        """Size in bytes above which the profile summarises parts of a result; 0 disables summaries."""
        profile = self.view.snapshot.profiles.get(self.profile)
        return 0 if profile is None else profile.summary_threshold

    @property
    def has_live_sources(self) -> bool:
        """True if the tenant has an enabled live source."""
        return bool(self.view.snapshot.live_sources)

    @property
    def result_scope(self) -> str:
        """Scope of the principal's stored results: profile and rules. Results of another scope cannot be read."""
        profile = self.view.snapshot.profiles.get(self.profile)
        version = 0 if profile is None else profile.version
        # guard: result-guardrails
        guardrails = ",".join(f"{one.id}.{one.version}" for one in self.view.snapshot.guardrails)
        # guard: result-scope
        return f"{self.profile}/{version}/{self.policy_version}/{guardrails}/{self.shown.variant}"

    @property
    def result_owner(self) -> str:
        """The owner of the principal's stored results and links; see `Call.result_owner`."""
        return f"{self.result_scope} {self.principal.subject}"

    def finish_result(self, members: bytes, *, is_modern: bool) -> bytes:
        """Return the members of a tool result as the profile sends them in a revision with structured content."""
        return replace_duplicate_text(members, is_modern=is_modern) if self.sends_once else members

    async def tool(self, name: str) -> BoundTool | None:
        """Return the tool with this stored, listed or former name, bound to its handler; None if absent.

        Pages of a live source (MCP Apps) call its tools by the names that they have there.
        """
        shown, name = self.shown, self.stored_name(name)
        found = shown.tools.by_name.get(name) or shown.renamed(name) or shown.of_page(name)
        return None if found is None else await self.view.bound(self.profile).tools.get(found)

    async def inner_tool(self, name: str) -> BoundTool | None:
        """Return a tool for a call by a handler; like `tool`, but with tools that an override hides from clients."""
        shown, name = self.shown, self.stored_name(name)
        found = shown.tools.by_name.get(name) or shown.unlisted(name) or shown.renamed(name)
        return None if found is None else await self.view.bound(self.profile).tools.get(found)

    def stored_name(self, called: str) -> str:
        """The stored name of the tool that has this listed name; any other name unchanged."""
        return self.view.snapshot.names.stored(called) or called

    def queried(self) -> Sequence[Queried]:
        """The sources of the query tools, with the operations that the profile shows."""
        return self.shown.queried

    async def operation(self, tool: Tool) -> BoundTool:
        """Return an operation of `queried`, bound to its handler."""
        return await self.view.bound(self.profile).tools.get(tool)

    async def resource(self, uri: str) -> BoundResource | None:
        """Return the resource at this URI, otherwise that of the first matching template; None if nothing matches.

        The URI of a stored result, which no list contains, is a resource too.
        """
        if is_result_uri(uri):
            return self.view.bind_result(uri)
        shown, bindings = self.shown, self.view.bound(self.profile)
        found = shown.resources.by_name.get(uri)
        if found is not None:
            return await bindings.resources.get(found)
        for primitive in shown.templates_for(uri):
            bound = (await bindings.templates.get(primitive)).at(uri)
            if bound is not None:
                return bound
        return None

    async def linked_resource(self, uri: str, source: LiveSourceId) -> BoundResource | None:
        """Return a resource of a live source that no list contains, because a tool of the source has linked to it."""
        resource = self.view.linked_resource(uri, source)
        if resource is None or not self.shown.permits_linked(resource):
            return None
        return await self.view.bind_linked(resource, self.profile)

    async def template(self, uri_template: str) -> BoundTemplate | None:
        """Return the resource template, bound to its handler; None if absent."""
        found = self.shown.templates.by_name.get(uri_template)
        return None if found is None else await self.view.bound(self.profile).templates.get(found)

    async def prompt(self, name: str) -> BoundPrompt | None:
        """Return the prompt with this name, bound to its handler; None if absent."""
        found = self.shown.prompts.by_name.get(name)
        return None if found is None else await self.view.bound(self.profile).prompts.get(found)

    def page(self, family: Family, cursor: str | None) -> ListPage[Tool] | ListPage[Primitive]:
        """Return one page of a family, sorted by name; without a cursor, or with an empty one, the first page.

        Raises:
            InvalidCursor: the cursor was not issued for this tenant, profile, list and access rules.
        """
        shown = self.shown
        scope = self.principal.tenant, self.profile + shown.variant, family.value  # guard: cursor-of-its-view
        last = self.cursors.open(*scope, cursor) if cursor else None
        return shown.of(family).page(last, lambda name: self.cursors.mint(*scope, name))

    def has(self, family: Family) -> bool:
        """True if the profile shows a primitive of the family."""
        return bool(self.shown.of(family).items)

    @property
    def is_interactive(self) -> bool:
        """True if a shown primitive may send log messages."""
        return self.shown.is_interactive

    @property
    def has_completions(self) -> bool:
        """True if a shown primitive suggests values for its arguments or variables."""
        return self.shown.has_completions

    def can_read(self, uri: str) -> bool:
        """True if the profile shows the URI and the policy does not deny it; no handler runs."""
        return self.shown.can_read(uri)

    def access_verdict(self, item: Tool | Primitive) -> AccessVerdict:
        """Return the access of the principal to a primitive, regardless of the profile."""
        return self.view.snapshot.access.judge(self.view.rules_for(self.principal), item)

    def is_denied(self, name: str) -> bool:
        """True if access rules hide the tool with this name or alias from the principal; False if it is missing."""
        snapshot, name = self.view.snapshot, self.stored_name(name)
        found = snapshot.by_name.get(name) or snapshot.unlisted.get(name) or snapshot.called(name)
        return found is not None and not self.access_verdict(found).is_allowed

    def permitting_scopes(self, item: Tool | Primitive) -> Sequence[str]:
        """Return the scopes of which one more would permit the primitive to the principal."""
        return self.view.snapshot.access.permitting_scopes(self.principal, item)

    def lists_the_same(self, other: "Registry", family: Family = Family.TOOL) -> bool:
        """True if both registries list the same definitions of a family.

        Resource templates count as resources: the same notification covers their changes.
        """
        families = (Family.RESOURCE, Family.TEMPLATE) if family is Family.RESOURCE else (family,)
        return self.shown is other.shown or all(self.shown.lists_the_same(other.shown, each) for each in families)

    def mirrored_schema(self, name: str) -> dict[str, Any] | None:
        """The input schema of a tool that mirrors arguments into headers (`x-mcp-header`); None for all others."""
        found = self.view.mirrored_schema(name)
        if found is None:
            return None
        shown, name = self.shown, self.stored_name(name)
        is_shown = name in shown.tools.by_name or shown.renamed(name) is not None
        return found if is_shown else None  # guard: mirrored-of-shown
