"""Doctor check for sources whose URL cannot be read, or whose proposal has been pending for a long time."""

from collections.abc import Sequence
from datetime import UTC, datetime

import anyio

from gateway.catalog.doctor.handler_checks import all_tenants
from gateway.catalog.doctor.limits import MAX_NAMED, MAX_PROPOSAL_AGE, TIMEOUT_S
from gateway.domain.findings import Finding, fine, list_names, warning
from gateway.errors import GatewayError
from gateway.store.engine import Store
from gateway.store.sources import refreshes

_FAILURES = 3
"""Number of consecutive failed refreshes after which a source is reported."""
_REMEDY = "`gateway --tenant SLUG source status` shows each fault and proposal; `source review NAME` decides"


async def check_sources(store: Store) -> Finding:
    """Finding on the sources of all tenants. It names sources, not faults, which may contain URLs.

    After 15 s, the remaining tenants are skipped, and the finding reports the timeout.
    """
    failing, old_proposals = list[str](), list[str]()
    since = datetime.now(UTC) - MAX_PROPOSAL_AGE
    try:
        with anyio.move_on_after(TIMEOUT_S) as scope:
            for tenant in await all_tenants(store):
                async with store.transaction(tenant.id) as db:
                    failed = await refreshes.failing(tenant.id, db, failures=_FAILURES)
                    stale = await refreshes.waiting(tenant.id, db, before=since)
                failing += [f"{tenant.slug}: {name}" for name in failed]
                old_proposals += [f"{tenant.slug}: {name}" for name in stale]
    except GatewayError as error:
        return warning("sources", f"not examined: {error.message}", "fix the findings on the database first")
    skipped_note = " (tenants skipped after a timeout)" if scope.cancelled_caught else ""
    return _to_finding(failing, old_proposals, skipped_note)


def _to_finding(failing: Sequence[str], old_proposals: Sequence[str], skipped_note: str) -> Finding:
    if not failing and not old_proposals:
        return fine("sources", f"no refresh of a source fails repeatedly, and no proposal is old{skipped_note}")
    problems = (("refreshes fail", failing), (f"proposals older than {MAX_PROPOSAL_AGE.days} days", old_proposals))
    detail = "; ".join(f"{problem}: {list_names(names, limit=MAX_NAMED)}" for problem, names in problems if names)
    return warning("sources", f"{detail}{skipped_note}", _REMEDY)
