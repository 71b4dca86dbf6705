"""Resource updates: a tenant reports that a resource has changed, and subscribed clients are notified."""

from collections.abc import Iterable, Sequence, Set

import anyio

from gateway.catalog.primitives.constraints import code_of
from gateway.catalog.transaction import CatalogContext
from gateway.catalog.updates.limits import NOTIFY_TIMEOUT_S
from gateway.definitions.uri.templates import UriTemplate
from gateway.domain.events import ResourceUpdated
from gateway.domain.fairness.thread_kinds import TEMPLATE_MATCHES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family
from gateway.errors import NotFound, RedisUnavailable, ResourceValidationError
from gateway.store import primitives
from gateway.store.engine import Db
from gateway.store.kinds.primitives import RESOURCES


async def report_update(tenant: TenantId, catalog: CatalogContext, uri: str) -> None:
    """Announce to all replicas that the resource at this URI has changed.

    Raises:
        NotFound: the tenant has neither a resource of this URI nor a template that matches it.
        RedisUnavailable: some replicas may have missed the event; the caller has to retry.
    """
    async with catalog.store.transaction(tenant) as db:
        exists = await is_known(tenant, catalog, db, uri)
    if not exists:
        raise NotFound("no such resource")
    await publish_updates(tenant, catalog, (uri,))


async def find_unknown(tenant: TenantId, catalog: CatalogContext, uris: Sequence[str]) -> Sequence[int]:
    """Indexes of the URIs that match neither a resource nor a template of the tenant."""
    async with catalog.store.transaction(tenant) as db:
        without_resource = await _without_resource(tenant, catalog, db, uris)
        templates = await _templates(tenant, catalog, db) if without_resource else ()
    unmatched = await _unmatched(tenant, templates, without_resource)
    return [index for index, uri in enumerate(uris) if uri in unmatched]


async def publish_updates(tenant: TenantId, catalog: CatalogContext, uris: Sequence[str]) -> None:
    """Announce changes of these resources to all replicas; the caller has to retry after a failure.

    Raises:
        RedisUnavailable: some replicas may have missed an event.
    """
    try:
        with anyio.fail_after(NOTIFY_TIMEOUT_S):
            for uri in dict.fromkeys(uris):
                await catalog.publish(ResourceUpdated(tenant=tenant, uri=uri))
    except TimeoutError:
        raise RedisUnavailable("Redis does not respond", retry_after_s=1.0) from None


async def is_known(tenant: TenantId, catalog: CatalogContext, db: Db, uri: str) -> bool:
    """True if a resource has the URI or a template matches it.

    Disabled primitives count as well, because only subscriptions decide which clients are notified.
    """
    without_resource = await _without_resource(tenant, catalog, db, [uri])
    return not without_resource or not await _unmatched(tenant, await _templates(tenant, catalog, db), without_resource)


async def _without_resource(tenant: TenantId, catalog: CatalogContext, db: Db, uris: Sequence[str]) -> Set[str]:
    """The URIs that do not identify a resource."""
    code = {one.name for one in await code_of(tenant, catalog, db) if one.family is Family.RESOURCE}
    without_resource: set[str] = set()
    for uri in set(uris) - code:
        found = await RESOURCES.get(tenant, db, uri)
        if found is None or found.uri != uri:
            without_resource.add(uri)
    return without_resource


async def _templates(tenant: TenantId, catalog: CatalogContext, db: Db) -> Sequence[str]:
    code = [one.name for one in await code_of(tenant, catalog, db) if one.family is Family.TEMPLATE]
    return [*await primitives.names(tenant, db, Family.TEMPLATE), *code]


async def _unmatched(tenant: TenantId, templates: Sequence[str], uris: Set[str]) -> Set[str]:
    """The URIs that no template matches. Runs in a worker thread, because many templates are slow to match."""
    return uris - await run_in_thread(TEMPLATE_MATCHES, tenant, matched_by, templates, uris) if uris else uris


def matched_by(templates: Iterable[str], uris: Iterable[str]) -> Set[str]:
    """The URIs that one of the templates matches. An invalid template matches no URI."""
    all_uris = frozenset(uris)
    unmatched = set(all_uris)
    for template_text in templates:
        candidates = [uri for uri in unmatched if uri.startswith(template_text.partition("{")[0])]
        if candidates and (template := _read(template_text)) is not None:
            unmatched -= {uri for uri in candidates if template.match(uri) is not None}
    return all_uris - unmatched


def _read(template: str) -> UriTemplate | None:
    try:
        return UriTemplate.parse(template)
    except ResourceValidationError:
        return None
