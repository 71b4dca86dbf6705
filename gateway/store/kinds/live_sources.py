"""Rows of live sources: the declared members and the state of the attachment, in one row."""

from gateway.kinds.sources import LIVE_SOURCE
from gateway.store.kinds.row_mapper import RowMapper
from gateway.store.kinds.rows import Rows
from gateway.store.tables import live_sources

LIVE_SOURCES = Rows(LIVE_SOURCE, RowMapper(LIVE_SOURCE.of, live_sources))
