"""The policy of a tenant: decisions by safety level and rule, the limits, and the origins of `http` handlers."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from gateway.catalog.ceilings import bounded_policy, changed, raise_defaults, refuse_above
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.origins import read_origins
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.definitions.policy.checks import find_faults
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.ceilings import BoundedPolicy
from gateway.domain.tenancy.policy import Policy, PolicyRule, RecordingRule
from gateway.errors import InvalidBody
from gateway.store.calls import policies
from gateway.store.kinds.singletons import CEILINGS


async def get_policy(tenant: TenantId, catalog: CatalogContext) -> BoundedPolicy:
    """The tenant's policy, or the default one, and the ceilings of its limits."""
    async with catalog.store.transaction(tenant) as db:
        return await bounded_policy(tenant, db, catalog.options.ceilings)


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

    `given` names the limits that the caller sent. If the caller is the operator, these limits may raise a ceiling.

    Raises:
        Forbidden: a sent or changed limit exceeds its ceiling.
        InvalidBody: an entry of `http_origins` is not an origin, or a rule is not valid.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="policy.update", target="policy")
    async with change(tenant, catalog, entry, by=by) as db:
        bounded = await bounded_policy(tenant, db, catalog.options.ceilings)
        current = bounded.stored
        check_version(bounded, expected)
        revised = _normalise(revise(current))
        entry.before, entry.after = current, revised
        limits_to_check = {*given, *changed(current.limits, revised.limits)}
        own = bounded.ceilings.own
        raised = raise_defaults(by.caller, revised.limits, bounded.ceilings, limits_to_check)
        if raised is not None:
            entry.detail["ceilings"] = changed(own, raised)
            await CEILINGS.save(tenant, db, raised)
        refuse_above(revised.limits, (raised or own).resolve(catalog.options.ceilings), limits_to_check)
        saved = await policies.save(tenant, db, revised)
        own = own if raised is None else await CEILINGS.get(tenant, db)
        return BoundedPolicy(stored=saved, ceilings=replace(bounded.ceilings, own=own))


def _normalise(policy: Policy) -> Policy:
    """The policy with normalised origins and checked rules."""
    check_rules(policy.rules, policy.recorded_arguments)
    if policy.http_origins is None:
        return policy
    return replace(policy, http_origins=read_origins(policy.http_origins, pointer="/http_origins"))


def check_rules(rules: Sequence[PolicyRule], recorded: Sequence[RecordingRule] = ()) -> None:
    """Refuse rules whose conditions cannot be evaluated, and recording rules whose arguments can never match.

    Raises:
        InvalidBody: each fault locates an invalid condition value or recording pointer.
    """
    faults = find_faults(rules, recorded)
    if faults:
        raise InvalidBody(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)
