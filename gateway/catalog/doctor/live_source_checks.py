"""Doctor check for live sources that cannot be attached; their tools are missing for clients."""

from collections.abc import Sequence

import anyio

from gateway.catalog.doctor.limits import MAX_NAMED, TIMEOUT_S
from gateway.domain.findings import Finding, fine, list_names, warning
from gateway.domain.live_sources import AttachmentState, LiveStatus
from gateway.errors import GatewayError
from gateway.store.engine import Store
from gateway.store.kinds.tenants import TENANTS
from gateway.store.live import live_sources

_FAILURES = 3
"""Number of consecutive failures after which a live source is reported; a restart of its program causes fewer."""
_REMEDY = (
    "`gateway --tenant SLUG source status` shows each fault; disable or remove live sources that are no longer used"
)


async def check_live_sources(store: Store) -> Finding:
    """Finding on the enabled live sources of all tenants. It names sources, not faults, which may contain URLs.

    After 15 s, the remaining tenants are skipped, and the finding reports the timeout.
    """
    examined, failing = 0, list[str]()
    try:
        with anyio.move_on_after(TIMEOUT_S) as scope:
            async with store.unscoped() as db:
                owners = dict.fromkeys(tenant for tenant, _, _ in await live_sources.all_enabled(db))
            for tenant in owners:
                async with store.transaction(tenant) as db:
                    owner, found = await TENANTS.get(tenant, db, tenant), await live_sources.load_enabled(tenant, db)
                examined += len(found)
                slug = tenant if owner is None else owner.slug
                failing += [f"{slug}: {one.name}" for one in found if _is_failing(one.status)]
    except GatewayError as error:
        return warning("live_sources", f"not examined: {error.message}", "fix the findings on the database first")
    return _to_finding(
        failing, f"{examined} examined" + (", the rest skipped after a timeout" if scope.cancelled_caught else "")
    )


def _is_failing(status: LiveStatus) -> bool:
    return status.state is AttachmentState.FAILED and status.failures >= _FAILURES


def _to_finding(failing: Sequence[str], examined: str) -> Finding:
    if not failing:
        return fine("live_sources", f"no live source fails repeatedly ({examined})")
    return warning("live_sources", f"failing: {list_names(failing, limit=MAX_NAMED)} ({examined})", _REMEDY)
