"""The policy of a tenant: what calls need, by safety level, and the limits."""

from collections.abc import Callable, Collection
from dataclasses import asdict, replace

from gateway.catalog.ceilings import bounded_policy, changed, raise_defaults, refuse_above
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.origins import read_origins
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.ceilings import BoundedPolicy
from gateway.domain.tenancy.policy import WORKING, Policy, Safety
from gateway.errors import Fault, NotYetSupported
from gateway.store import ceilings, policies


async def get_policy(tenant: TenantId, catalog: CatalogContext) -> BoundedPolicy:
    """The tenant's policy, the default where none was set, and the ceilings over its limits."""
    async with catalog.store.transaction(tenant) as db:
        return await bounded_policy(tenant, db, catalog.ceilings)


async def update_policy(
    tenant: TenantId,
    catalog: CatalogContext,
    revise: Callable[[Policy], Policy],
    *,
    by: Author,
    expected: Expected = None,
    given: Collection[str] = (),
) -> BoundedPolicy:
    """The policy as revised, in force with the next revision; `given` names the limits that the caller sent.

    Raises:
        Forbidden: a limit is above its ceiling.
        InvalidBody: an origin is none.
        NotYetSupported: a level would need what does not exist yet.
        PreconditionFailed: it is another version than expected.
    """
    entry = CatalogChange(action="policy.update", target="policy")
    async with change(tenant, catalog, entry, by=by) as db:
        bounded = await bounded_policy(tenant, db, catalog.ceilings)
        current = bounded.stored
        check_version(bounded, expected)
        revised = _tidy(revise(current))
        _check_decisions(revised)
        before, after = asdict(current), asdict(revised)
        entry.detail = {name: after[name] for name in after if name != "version" and after[name] != before[name]}
        judged = {*given, *changed(current.limits, revised.limits)}
        own = bounded.ceilings.own
        raised = raise_defaults(by.caller, revised.limits, bounded.ceilings, judged)
        if raised is not None:
            entry.detail["ceilings"] = changed(own, raised)
            await ceilings.save(tenant, db, raised)
        refuse_above(revised.limits, (raised or own).resolve(catalog.ceilings), judged)
        await policies.save(tenant, db, revised)
        return await bounded_policy(tenant, db, catalog.ceilings)


def _tidy(policy: Policy) -> Policy:
    """The policy with its origins in the form that they are compared in."""
    if policy.http_origins is None:
        return policy
    return replace(policy, http_origins=read_origins(policy.http_origins, pointer="/http_origins"))


def _check_decisions(policy: Policy) -> None:
    faults = [
        Fault(pointer=f"/{level}", reason=f"{decision} does not exist yet; allowed: {', '.join(WORKING)}")
        for level in Safety
        if (decision := policy.decision_for(level)) not in WORKING
    ]
    if faults:
        raise NotYetSupported(f"policy: {faults[0].reason}", faults=faults)
