"""Rows of profiles: the rules and options of each are one JSON object."""

from gateway.kinds.selections import PROFILE
from gateway.store.kinds.row_mapper import RowMapper
from gateway.store.kinds.rows import Rows
from gateway.store.tables import profiles

PROFILES = Rows(PROFILE, RowMapper(PROFILE.of, profiles, packed="rules"))
