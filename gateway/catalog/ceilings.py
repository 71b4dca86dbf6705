"""Ceilings of a tenant's limits. The operator sets them; the limits in force never exceed them."""

from collections.abc import Collection
from dataclasses import asdict, replace

from gateway.catalog.transaction import CatalogContext, CatalogOptions
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.ceilings import LIMIT_NAMES, Ceilings, CeilingsInForce, CeilingsStatus, least
from gateway.domain.tenancy.policy import Limits, Policy
from gateway.domain.tenancy.principals import Caller, Operator
from gateway.errors import Fault, Forbidden
from gateway.store.engine import Db
from gateway.store.kinds.singletons import CEILINGS, POLICY


async def read_effective(tenant: TenantId, db: Db, own: Ceilings, options: CatalogOptions) -> CeilingsStatus:
    """The ceilings in force."""
    del tenant, db
    found = CeilingsInForce(own=own, defaults=options.ceilings)
    return CeilingsStatus(effective=found.limits, defaulted=found.defaulted)


async def policy_in_force(tenant: TenantId, db: Db, defaults: Limits) -> Policy:
    """The policy with its limits capped by the ceilings. Checks of limits use this policy, not the stored one."""
    stored, own = await POLICY.get(tenant, db), await CEILINGS.get(tenant, db)
    return replace(stored, limits=least(stored.limits, own.resolve(defaults)))


async def limits_of(tenant: TenantId, catalog: CatalogContext) -> Limits:
    """The limits in force."""
    async with catalog.store.transaction(tenant) as db:
        return (await policy_in_force(tenant, db, catalog.options.ceilings)).limits


def raise_defaults(caller: Caller, wanted: Limits, current: CeilingsInForce, given: Collection[str]) -> Ceilings | None:
    """The tenant's ceilings after a change of limits by the operator; None if the change does not affect them.

    A limit that the operator sets above a default ceiling becomes the tenant's ceiling. Ceilings that were set
    explicitly stay unchanged.
    """
    if not isinstance(caller, Operator):  # guard: ceilings-raised-by-the-operator
        return None
    bounds = current.limits
    above = {
        name: getattr(wanted, name)
        for name in current.defaulted
        if name in given and getattr(wanted, name) > getattr(bounds, name)
    }
    return replace(current.own, **above) if above else None


def refuse_above(wanted: Limits, bounds: Limits, given: Collection[str]) -> None:
    """Refuse limits named in `given` that exceed their ceilings.

    Raises:
        Forbidden: such a limit exceeds its ceiling; each fault points at one of these limits.
    """
    faults = [
        Fault(
            pointer=f"/limits/{name}",
            reason=f"{getattr(wanted, name):g} is above the tenant's ceiling of {getattr(bounds, name):g};"
            " only the operator can raise it (`gateway ceilings`)",
        )
        for name in LIMIT_NAMES
        if name in given and getattr(wanted, name) > getattr(bounds, name)
    ]
    if faults:  # guard: limits-above-refused
        raise Forbidden(f"limit {faults[0].pointer.rpartition('/')[2]}: {faults[0].reason}", faults=faults)


def changed(before: Ceilings | Limits, after: Ceilings | Limits) -> dict[str, object]:
    """The limits that differ, with their new values."""
    old, new = asdict(before), asdict(after)
    return {name: new[name] for name in LIMIT_NAMES if new[name] != old[name]}
