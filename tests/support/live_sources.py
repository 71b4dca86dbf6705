"""Live sources for tests: as an admin would declare them, before they are stored."""

from dataclasses import replace
from typing import Any

from gateway.catalog.kinds.live_sources import LIVE_SOURCES
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.live_sources import LiveKind, LiveSource
from gateway.kinds.sources import LIVE_SOURCE
from tests.support.ids import new_live_source_id


def live_draft(name: str, kind: LiveKind, **members: Any) -> LiveSource:
    """A live source of this name and kind that is not stored."""
    return LIVE_SOURCE.make(name, {"kind": kind, **members})


async def declare_live(tenant: TenantId, catalog: CatalogContext, draft: LiveSource, *, by: Author) -> LiveSource:
    """Store a live source under a new id, so that a draft can be stored twice."""
    return await LIVE_SOURCES.create(tenant, catalog, replace(draft, id=new_live_source_id()), by=by)
