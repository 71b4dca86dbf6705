"""Doctor check for tools, and results, that popular clients refuse or leave out."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import anyio

from gateway.catalog.doctor.handler_checks import all_tenants
from gateway.catalog.doctor.limits import LARGE_RESULT_BYTES, MAX_NAMED, RECENT, TIMEOUT_S
from gateway.catalog.snapshots.composition import Composition, compose
from gateway.catalog.snapshots.listed_form import find_client_limits
from gateway.catalog.snapshots.python_primitives import PythonPrimitives, primitives_for
from gateway.catalog.snapshots.snapshots import load_offer
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.findings import Finding, fine, list_names, warning
from gateway.domain.listed.client_limits import (
    CLAUDE_CODE,
    CLAUDE_CODE_RESULT_TOKENS,
    ClientFinding,
)
from gateway.errors import GatewayError
from gateway.store import operations, primitives
from gateway.store.audit import entries
from gateway.store.engine import Store
from gateway.store.sources import sources

_REMEDY = (
    "`gateway --tenant SLUG tool show NAME` shows the limits of one tool; docs/clients.md has all of them. For large"
    " results, give the client a profile with `summary_threshold`, or with `selects_fields`"
)


async def check_clients(store: Store, code: PythonPrimitives | None) -> Finding:
    """Finding on the lists of tools that the default profiles of all tenants show, and on results of the last days.

    After 15 s, the remaining tenants are skipped, and the finding reports the timeout.
    """
    examined, found = 0, dict[tuple[str, str], list[str]]()
    try:
        with anyio.move_on_after(TIMEOUT_S) as scope:
            for tenant in await all_tenants(store):
                async with store.transaction(tenant.id) as db:
                    imported = await operations.load(tenant.id, db)
                    own = await primitives.load(tenant.id, db)
                    is_queried = bool(await sources.queried(tenant.id, db))
                    offer = await load_offer(tenant.id, db)
                    since = datetime.now(UTC) - RECENT
                    large = await entries.find_large_results(tenant.id, db, least=LARGE_RESULT_BYTES, since=since)
                added = primitives_for(code, tenant.slug)
                composing = partial(compose, imported, own, added, with_queries=is_queried, offer=offer)
                for one in await run_in_thread(CATALOG_CHANGES, tenant.id, _examine, composing):
                    found.setdefault((", ".join(one.clients), one.text), []).append(tenant.slug)
                if large:
                    found.setdefault((CLAUDE_CODE, _describe(large)), []).append(tenant.slug)
                examined += 1
    except GatewayError as error:
        return warning("clients", f"not examined: {error.message}", "fix the findings on the database first")
    rest = ", the rest skipped after a timeout" if scope.cancelled_caught else ""
    if not found:
        examination = f"tenants examined: {examined}{rest}"
        return fine("clients", f"every listed tool is within the limits of clients ({examination})")
    texts = [
        f"{clients} {text}: {list_names(slugs, limit=MAX_NAMED)}" for (clients, text), slugs in sorted(found.items())
    ]
    return warning("clients", "; ".join(texts) + rest, _REMEDY)


def _describe(large: Mapping[str, int]) -> str:
    """Describe the tools with results that are too large, the largest first."""
    sizes = [f"{tool} {size:,} bytes" for tool, size in sorted(large.items(), key=lambda pair: -pair[1])]
    tools = list_names(sizes, limit=MAX_NAMED)
    tokens = f"{CLAUDE_CODE_RESULT_TOKENS:,} tokens"
    return f"refuses results of more than {tokens} (in the last {RECENT.days} days: {tools})"


def _examine(composing: Callable[[], Composition]) -> Sequence[ClientFinding]:
    composed = composing()
    return find_client_limits(composed.tools, composed.names)
