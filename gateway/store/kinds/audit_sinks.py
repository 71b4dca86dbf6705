"""Rows of the sinks of a tenant's audit trail."""

from gateway.kinds.deliveries import SINK
from gateway.store.kinds.row_mapper import RowMapper
from gateway.store.kinds.rows import Rows
from gateway.store.tables import audit_sinks

SINKS = Rows(SINK, RowMapper(SINK.of, audit_sinks))
