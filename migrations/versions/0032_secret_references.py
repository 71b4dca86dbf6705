"""Credentials whose secret stays in an outside store.

Only adds: code of earlier revisions cannot open a credential with a reference, so it sends none.
"""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("alter table credentials add column reference jsonb")
