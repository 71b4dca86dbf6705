"""Token costs of profiles: the number of primitives that each profile lists, and the size of its list of tools."""

from collections.abc import Sequence

from gateway.catalog.primitives.constraints import code_of
from gateway.catalog.snapshots.composition import Composition, compose
from gateway.catalog.snapshots.listed_form import (
    ListedForm,
    ToolListing,
    added_templates,
    added_tools,
    form_of,
)
from gateway.catalog.snapshots.query_coverage import added_queries
from gateway.catalog.snapshots.snapshots import load_offer
from gateway.catalog.transaction import CatalogContext
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.listed.definition import written
from gateway.domain.listed.names import ListedNames
from gateway.domain.tenancy.profiles import Profile, ProfileCosts, ProfileCounts
from gateway.domain.tenancy.selection import compile_selection
from gateway.domain.tools import Tool
from gateway.domain.updates.import_reports import estimate_tokens
from gateway.store import operations, primitives
from gateway.store.sources import sources

_EMPTY_LIST = len(b'{"tools":[]}')


async def price_profiles(
    tenant: TenantId, catalog: CatalogContext, profiles: Sequence[Profile]
) -> Sequence[ProfileCosts]:
    """The primitives that each profile lists in the current catalog, and their costs."""
    async with catalog.store.reading(tenant) as db:
        code = await code_of(tenant, catalog, db)
        imported = await operations.load(tenant, db)
        own = await primitives.load(tenant, db)
        queried = await sources.queried(tenant, db)
        offer = await load_offer(tenant, db)

    def price_all() -> Sequence[ProfileCosts]:
        composed = compose(imported, own, code, with_queries=bool(queried), offer=offer)
        sizes = _Sizes(composed.names)
        return [_price(profile, composed, sizes) for profile in profiles]

    return await run_in_thread(CATALOG_CHANGES, tenant, price_all)


class _Sizes:
    """The bytes of tools as clients receive them; profiles with the same form share them."""

    def __init__(self, names: ListedNames) -> None:
        self._names = names
        self._known: dict[tuple[ListedForm | None, str], int] = {}

    def of(self, tool: Tool, form: ListedForm | None) -> int:
        """The bytes of a tool in a form."""
        key = form, tool.name
        if key not in self._known:
            self._known[key] = len(written(ToolListing(self._names, form)(tool)))
        return self._known[key]


def _price(profile: Profile, composed: Composition, known: _Sizes) -> ProfileCosts:
    shows = compile_selection(profile)
    form = form_of(profile)
    tools = (*filter(shows, composed.tools), *added_queries(profile, composed, shows))
    sizes = [known.of(tool, form) for tool in (*tools, *added_tools(profile))]
    counts = ProfileCounts(
        tools=len(sizes),
        resources=sum(map(shows, composed.resources)),
        resource_templates=sum(map(shows, composed.templates)) + len(added_templates(profile)),
        prompts=sum(map(shows, composed.prompts)),
    )
    size = _EMPTY_LIST + sum(sizes) + max(len(sizes) - 1, 0)
    return ProfileCosts(counts=counts, tools_list_bytes=size, estimated_tokens=estimate_tokens(size))
