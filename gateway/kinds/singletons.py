"""The declared singletons."""

from collections.abc import Sequence
from typing import Any

from gateway.domain.audit import AuditRetention, RetentionStatus
from gateway.domain.tenancy.access import AccessRules
from gateway.domain.tenancy.ceilings import Ceilings, CeilingsStatus
from gateway.domain.tenancy.egress import Egress
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import Policy, PolicyStatus, follow_rate
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
POLICY = Singleton(
    of=Policy,
    stem="Policy",
    name="policy",
    path="policy",
    noun="policy",
    about="the decisions about a tenant's calls by safety level and rule, and its limits",
    example={
        "dangerous": "deny",
        "limits": {"calls_per_second": 20, "burst": 40},
        "rules": [
            {
                "tool": "refund_*",
                "when": [{"pointer": "/amount", "operator": "greater", "value": 1000}],
                "decision": "approve",
                "reason": "a large refund",
            }
        ],
        "recorded_arguments": [{"tool": "refund_*", "keep": ["/amount"], "hash": ["/customer"]}],
    },
    status=PolicyStatus,
    complete=follow_rate,
)
ACCESS = Singleton(
    of=AccessRules,
    stem="Access",
    name="access",
    path="access",
    noun="access",
    about="the access rules of a tenant, and the roles of its people",
    names_objects=True,
    example={
        "default": "allow",
        "rules": [
            {
                "effect": "deny",
                "who": ["everyone"],
                "unless": ["group:corp:finance"],
                "what": {"sources": ["payroll"]},
                "reason": "salaries are for finance",
            },
            {
                "effect": "deny",
                "who": ["people"],
                "unless": ["scope:corp:write"],
                "what": {"safety": ["moderate", "dangerous"]},
                "reason": "changes need a token with the scope write",
            },
        ],
        "roles": [{"role": "approve", "who": ["group:corp:leads"], "reason": "leads answer for their teams"}],
    },
)

SINGLETONS: Sequence[Singleton[Any]] = (EGRESS, RETENTION, CEILINGS, POLICY, ACCESS)
