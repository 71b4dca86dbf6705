"""Tasks that name the approval for which they wait.

Only adds: code of earlier revisions stores tasks without it, and shows none.
"""

from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("alter table mcp_tasks add column approval jsonb")
