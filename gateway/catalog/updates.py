"""That what stands at a URI is not what it was: said by the tenant, told to whoever follows the resource."""

from collections.abc import Sequence

import anyio

from gateway.catalog.catalog import Catalog
from gateway.catalog.checking import code_of
from gateway.definitions.uri_templates import UriTemplate
from gateway.domain.events import ResourceUpdated
from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family
from gateway.errors import NotFound, RedisUnavailable, ResourceValidationError
from gateway.store import primitives
from gateway.store.engine import Db

_TELL_S = 5.0


async def report_update(tenant: TenantId, catalog: Catalog, uri: str) -> None:
    """Tell all replicas that the resource at this URI has changed.

    Raises:
        NotFound: the tenant has neither a resource of this URI nor a template that makes it.
        RedisUnavailable: not everybody knows; there is no later truth that would tell them.
    """
    async with catalog.store.transaction(tenant) as db:
        known = await is_known(tenant, catalog, db, uri)
    if not known:
        raise NotFound("no such resource")
    await tell_updates(tenant, catalog, (uri,))


async def find_unknown(tenant: TenantId, catalog: Catalog, uris: Sequence[str]) -> Sequence[int]:
    """The places of those URIs for which the tenant has neither a resource nor a template."""
    async with catalog.store.transaction(tenant) as db:
        return [place for place, uri in enumerate(uris) if not await is_known(tenant, catalog, db, uri)]


async def tell_updates(tenant: TenantId, catalog: Catalog, uris: Sequence[str]) -> None:
    """Tell all replicas of these resources, for a caller who will come again when that fails.

    Raises:
        RedisUnavailable: not everybody knows.
    """
    try:
        with anyio.fail_after(_TELL_S):
            for uri in dict.fromkeys(uris):
                await catalog.publish(ResourceUpdated(tenant=tenant, uri=uri))
    except TimeoutError:
        raise RedisUnavailable("Redis does not answer", retry_after_s=1.0) from None


async def is_known(tenant: TenantId, catalog: Catalog, db: Db, uri: str) -> bool:
    """Whether a resource or template stands for the URI, enabled or not: who follows it decides what is told."""
    found = await primitives.get(tenant, db, Family.RESOURCE, uri)
    if found is not None and found.name == uri:
        return True
    code = await code_of(tenant, catalog, db)
    if any(one.family is Family.RESOURCE and one.name == uri for one in code):
        return True
    templates = [*await primitives.names(tenant, db, Family.TEMPLATE)]
    templates += [one.name for one in code if one.family is Family.TEMPLATE]
    return any(_makes(template, uri) for template in templates)


def _makes(template: str, uri: str) -> bool:
    if not uri.startswith(template.partition("{")[0]):
        return False
    try:
        return UriTemplate.parse(template).match(uri) is not None
    except ResourceValidationError:
        return False
