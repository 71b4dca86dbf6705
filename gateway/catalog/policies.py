"""The policy of a tenant: a decision per safety level, the limits, and the origins of `http` handlers."""

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
    """The tenant's policy, or the default one, and the ceilings of its limits."""
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
    """Replace the policy with the one that `revise` returns; the new catalog revision contains it.

    `given` names the limits that the caller sent. If the caller is the operator, a sent limit may raise a ceiling.

    Raises:
        Forbidden: a sent or changed limit exceeds its ceiling.
        InvalidBody: an entry of `http_origins` is not an origin.
        NotYetSupported: the decision for a level is not implemented yet.
        PreconditionFailed: the current version matches no expected tag.
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
    """The policy with normalised origins."""
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
