"""The policy of a tenant: what calls need, by safety level, and the limits."""

from collections.abc import Callable
from dataclasses import asdict, replace

from gateway.catalog.catalog import Author, Catalog, Change, change
from gateway.catalog.origins import read_origins
from gateway.catalog.versions import Expected, check_version
from gateway.domain.identifiers import TenantId
from gateway.domain.policy import Decision, Policy, Safety
from gateway.errors import Fault, NotYetSupported
from gateway.store import policies

_WORKING = frozenset({Decision.ALLOW, Decision.CONFIRM, Decision.DENY})


async def get_policy(tenant: TenantId, catalog: Catalog) -> Policy:
    """The tenant's policy; the default where none was set."""
    async with catalog.store.transaction(tenant) as db:
        return await policies.get(tenant, db)


async def update_policy(
    tenant: TenantId, catalog: Catalog, revise: Callable[[Policy], Policy], *, by: Author, expected: Expected = None
) -> Policy:
    """The policy as revised, in force with the next revision.

    Raises:
        InvalidBody: an origin is none.
        NotYetSupported: a level would need what does not exist yet.
        PreconditionFailed: it is another version than expected.
    """
    entry = Change(action="policy.update", target="policy")
    async with change(tenant, catalog, entry, by=by) as db:
        current = await policies.get(tenant, db)
        check_version(current, expected)
        revised = _tidy(revise(current))
        _check_decisions(revised)
        before, after = asdict(current), asdict(revised)
        entry.detail = {name: after[name] for name in after if name != "version" and after[name] != before[name]}
        await policies.save(tenant, db, revised)
        return await policies.get(tenant, db)


def _tidy(policy: Policy) -> Policy:
    """The policy with its origins in the form that they are compared in."""
    if policy.http_origins is None:
        return policy
    return replace(policy, http_origins=read_origins(policy.http_origins, pointer="/http_origins"))


def _check_decisions(policy: Policy) -> None:
    faults = [
        Fault(pointer=f"/{level}", reason=f"{decision} does not exist yet; allowed: allow, confirm, deny")
        for level in Safety
        if (decision := policy.decision_for(level)) not in _WORKING
    ]
    if faults:
        raise NotYetSupported(f"policy: {faults[0].reason}", faults=faults)
