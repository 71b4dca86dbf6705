"""Rows of watches."""

from gateway.kinds.updates import WATCH
from gateway.store.kinds.row_mapper import RowMapper
from gateway.store.kinds.rows import Rows
from gateway.store.tables import watches

WATCHES = Rows(WATCH, RowMapper(WATCH.of, watches))
