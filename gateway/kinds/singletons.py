"""The declared singletons."""

from collections.abc import Sequence
from typing import Any

from gateway.domain.audit import AuditRetention, RetentionStatus
from gateway.domain.tenancy.ceilings import Ceilings, CeilingsStatus
from gateway.domain.tenancy.egress import Egress
from gateway.domain.tenancy.keys import Scope
from gateway.kinds.singleton import OPERATOR, Singleton

EGRESS = Singleton(
    of=Egress,
    stem="Egress",
    name="egress",
    path="egress",
    noun="egress",
    about="the private upstreams that the operator permits for a tenant",
    example={"allow": ["billing.internal:8443", "10.0.0.5:8080"]},
    writers=OPERATOR,  # guard: egress-operator-only
)

RETENTION = Singleton(
    of=AuditRetention,
    stem="Retention",
    name="audit_retention",
    path="audit/retention",
    noun="retention",
    about="the retention of a tenant's audit entries",
    example={"days": 365},
    status=RetentionStatus,
    readers=frozenset({Scope.ADMIN, Scope.AUDIT}),
)
CEILINGS = Singleton(
    of=Ceilings,
    stem="Ceilings",
    name="ceilings",
    path="ceilings",
    noun="ceilings",
    about="the ceilings of a tenant's limits and the bounds of its admins",
    example={"calls_per_second": 1000, "burst": 2000, "admin_bounds": {"keys": 20, "issuers": False}},
    status=CeilingsStatus,
    writers=OPERATOR,  # guard: ceilings-of-the-operator
)

SINGLETONS: Sequence[Singleton[Any]] = (EGRESS, RETENTION, CEILINGS)
