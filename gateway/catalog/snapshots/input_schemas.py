"""Full input schemas of imported tools that list shortened ones, loaded when a tool is bound or described."""

import structlog

from gateway.domain.identifiers import TenantId
from gateway.domain.tools import Tool
from gateway.store import operations
from gateway.store.engine import Store

log = structlog.get_logger(__name__)


class StoredInputSchemas:
    """Reader of full input schemas from the database.

    Bound tools keep their validators, so each schema is read once.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, tenant: TenantId, tool: Tool) -> bytes | None:
        """The full input schema; None if another import has replaced the operation since the snapshot was loaded.

        Raises:
            Unavailable: the database is unreachable.
        """
        async with self._store.reading(tenant) as db:
            found = await operations.input_schema(tenant, db, tool.operation)
        if found is None:
            log.info("input_schema_gone", tenant_id=tenant, tool=tool.name)
        return found
