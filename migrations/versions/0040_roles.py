"""Roles of people, beside the access rules of their tenant.

Only adds: code of earlier revisions keeps the roles when it replaces the rules, and serves no page for them.
"""

from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("alter table access_rules add column roles jsonb not null default '[]'")
