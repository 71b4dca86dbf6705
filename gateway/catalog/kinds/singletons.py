"""The singletons of each tenant, with their special functions."""

from collections.abc import Sequence
from typing import Any

from gateway.catalog.audit_retention import check_minimum, read_status, schedule_cuts
from gateway.catalog.ceilings import read_effective
from gateway.catalog.egress import normalise_egress
from gateway.catalog.kinds.single_object import SingleObject
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

SINGLE_OBJECTS: Sequence[SingleObject[Any]] = (EGRESS, RETENTION, CEILINGS)
