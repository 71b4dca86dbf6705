"""Ceilings of what a tenant's own admins may do with keys and issuers; null: no ceiling.

Only adds: code of earlier revisions works on this schema, without these ceilings.
"""

from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("alter table ceilings add column admin_bounds jsonb")
