"""Rows of the declared singletons."""

from gateway.kinds import singletons as kinds
from gateway.store.audit.tables import audit_retention
from gateway.store.kinds.single_row import SingleRow
from gateway.store.tables import ceilings, egress, policies

CEILINGS = SingleRow(kinds.CEILINGS.of, ceilings)
EGRESS = SingleRow(kinds.EGRESS.of, egress)
POLICY = SingleRow(kinds.POLICY.of, policies)
RETENTION = SingleRow(kinds.RETENTION.of, audit_retention)
