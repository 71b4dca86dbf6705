"""A tenant's own primitives through their collections, given the bodies of the admin API."""

from collections.abc import Mapping
from typing import Any

from gateway.catalog.etags import Expected
from gateway.catalog.kinds.primitives import COLLECTIONS
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family
from gateway.web.kinds.models import models_of


def own(family: Family, body: Mapping[str, Any]) -> Any:
    """The object that a body describes; nothing is stored."""
    models = models_of(COLLECTIONS[family].kind)
    sent = models.create.model_validate(dict(body))
    return models.compose(sent, models.key_of(sent), None)


async def create_own(
    tenant: TenantId, catalog: CatalogContext, family: Family, body: Mapping[str, Any], *, by: Author
) -> Any:
    """Create a primitive; return it with its status."""
    collection = COLLECTIONS[family]
    made = await collection.create(tenant, catalog, own(family, body), by=by)
    return await collection.get(tenant, catalog, made.id)


async def change_own(
    tenant: TenantId,
    catalog: CatalogContext,
    family: Family,
    name: str,
    body: Mapping[str, Any],
    *,
    by: Author,
    expected: Expected = None,
) -> Any:
    """Change what the body gives of a primitive."""
    collection = COLLECTIONS[family]
    models = models_of(collection.kind)
    sent = models.change.model_validate(dict(body))
    return await collection.change(
        tenant, catalog, name, lambda one: models.revise(sent, one), by=by, expected=expected
    )
