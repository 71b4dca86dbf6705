"""The outline of a document for the query tools, stored with its version.

Only adds: code of 0003 works on this schema.
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("alter table source_versions add column outline bytea")
