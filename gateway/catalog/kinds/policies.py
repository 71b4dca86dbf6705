"""Special functions of a tenant's policy: its rules, origins of `http` handlers, and limits below ceilings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gateway.catalog.ceilings import changed, raise_defaults, refuse_above
from gateway.catalog.origins import read_origins
from gateway.catalog.transaction import CatalogOptions, OpenChanges
from gateway.definitions.policy.checks import find_faults
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.ceilings import CeilingsInForce, least
from gateway.domain.tenancy.policy import Policy, PolicyRule, PolicyStatus, RecordingRule
from gateway.errors import InvalidBody
from gateway.store.engine import Db
from gateway.store.kinds.singletons import CEILINGS


async def read_limits(tenant: TenantId, db: Db, policy: Policy, options: CatalogOptions) -> PolicyStatus:
    """The limits in force, and their ceilings."""
    ceilings = CeilingsInForce(own=await CEILINGS.get(tenant, db), defaults=options.ceilings).limits
    return PolicyStatus(effective=least(policy.limits, ceilings), ceilings=ceilings)


async def tag_policy(tenant: TenantId, db: Db, policy: Policy) -> str:
    """The entity tag, which also changes with the ceilings: they decide the limits in force."""
    return f"policy.{policy.version}.{(await CEILINGS.get(tenant, db)).version}"


async def bound_limits(opened: OpenChanges, before: Policy, after: Policy) -> Mapping[str, object]:
    """Refuse changed limits above their ceilings; those that the operator changes may raise a default ceiling.

    Raises:
        Forbidden: a changed limit exceeds its ceiling.
    """
    tenant, db, defaults = opened.tenant, opened.db, opened.catalog.options.ceilings
    names = changed(before.limits, after.limits)
    own = await CEILINGS.get(tenant, db)
    raised = raise_defaults(opened.by.caller, after.limits, CeilingsInForce(own=own, defaults=defaults), names)
    refuse_above(after.limits, (raised or own).resolve(defaults), names)
    if raised is None:
        return {}
    await CEILINGS.save(tenant, db, raised)
    return {"ceilings": changed(own, raised)}


def normalise_policy(policy: Policy) -> Policy:
    """Return the policy with normalised origins and checked rules.

    Raises:
        InvalidBody: an entry of `http_origins` is not an origin, or a rule is not valid.
    """
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
