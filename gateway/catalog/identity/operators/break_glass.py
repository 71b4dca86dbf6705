"""Uses of a key of the setting, which is for emergencies once operators have names."""

from dataclasses import replace

import structlog

from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.identifiers import INSTALLATION
from gateway.domain.tenancy.principals import Operator
from gateway.errors import GatewayError

log = structlog.get_logger(__name__)

ACTION = "operator.break_glass"


async def note_break_glass(catalog: CatalogContext, *, by: Author) -> None:
    """Warn in the log, and add an entry to the trail of the installation. A failure delays no emergency."""
    key = by.caller.key if isinstance(by.caller, Operator) else ""
    log.warning("break_glass_key_used", key=key, address="" if by.origin is None else by.origin.address)
    try:
        async with change(
            INSTALLATION, catalog, CatalogChange(action=ACTION, target=key), by=replace(by, attempt=None)
        ):
            pass
    except GatewayError as error:
        log.warning("break_glass_not_recorded", key=key, reason=error.message)
