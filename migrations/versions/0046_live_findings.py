"""Suspicious texts in the definitions of live sources.

Only adds: code of earlier revisions stores definitions without findings, and ignores stored ones.
"""

from alembic import op

revision = "0046"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("alter table live_primitives add column findings jsonb not null default '[]'")
