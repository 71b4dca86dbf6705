"""Rows of the declared singletons."""

from gateway.kinds.singletons import EGRESS as EGRESS_KIND
from gateway.store.kinds.single_row import SingleRow
from gateway.store.tables import egress

EGRESS = SingleRow(EGRESS_KIND.of, egress)
