"""Rows of tenants; the revision of a tenant is the version of its row, which every change of its catalog raises."""

from gateway.kinds.identity import TENANT
from gateway.store.kinds.row_mapper import RowMapper
from gateway.store.kinds.rows import Rows
from gateway.store.tables import tenants

TENANTS = Rows(TENANT, RowMapper(TENANT.of, tenants))
