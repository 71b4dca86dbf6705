"""The singletons of each tenant, with their special functions."""

from collections.abc import Sequence
from typing import Any

from gateway.catalog.audit_retention import check_minimum, read_status, schedule_cuts
from gateway.catalog.ceilings import read_effective
from gateway.catalog.egress import normalise_egress
from gateway.catalog.identity.access_rules import check_access, check_scopes
from gateway.catalog.kinds.engines.single_object import SingleObject
from gateway.catalog.kinds.policies import bound_limits, normalise_policy, read_limits, tag_policy
from gateway.kinds import singletons as kinds
from gateway.store.kinds import singletons as rows

EGRESS = SingleObject(kind=kinds.EGRESS, row=rows.EGRESS, normalise=normalise_egress)
RETENTION = SingleObject(
    kind=kinds.RETENTION,
    row=rows.RETENTION,
    check=check_minimum,
    written=schedule_cuts,
    compute=read_status,
)
CEILINGS = SingleObject(kind=kinds.CEILINGS, row=rows.CEILINGS, compute=read_effective)
POLICY = SingleObject(
    kind=kinds.POLICY,
    row=rows.POLICY,
    normalise=normalise_policy,
    written=bound_limits,
    compute=read_limits,
    initial=lambda _, options: options.tenant_policy,
    tag=tag_policy,
)
ACCESS = SingleObject(kind=kinds.ACCESS, row=rows.ACCESS, normalise=check_scopes, check=check_access)

SINGLE_OBJECTS: Sequence[SingleObject[Any]] = (EGRESS, RETENTION, CEILINGS, POLICY, ACCESS)
