"""Rows of the declared singletons."""

from gateway.kinds import singletons as kinds
from gateway.store.audit.tables import audit_retention
from gateway.store.identity.access_rules import read_default, read_roles, read_rules, write_roles
from gateway.store.identity.tables import access_rules
from gateway.store.kinds.single_row import SingleRow
from gateway.store.tables import ceilings, egress, policies

ACCESS = SingleRow(
    kinds.ACCESS.of,
    access_rules,
    columns={"default": "default_effect"},
    reads={"default": read_default, "rules": read_rules, "roles": read_roles},
    writes={"roles": write_roles},
)
CEILINGS = SingleRow(kinds.CEILINGS.of, ceilings)
EGRESS = SingleRow(kinds.EGRESS.of, egress)
POLICY = SingleRow(kinds.POLICY.of, policies)
RETENTION = SingleRow(kinds.RETENTION.of, audit_retention)
