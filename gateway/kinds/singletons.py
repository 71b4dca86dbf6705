"""The declared singletons."""

from collections.abc import Sequence
from typing import Any

from gateway.domain.tenancy.egress import Egress
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

SINGLETONS: Sequence[Singleton[Any]] = (EGRESS,)
