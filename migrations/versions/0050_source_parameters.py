"""Parameters of a source that stored credentials fill, and the time limit of its calls.

Only adds: code of earlier revisions keeps both values of a source, and compiles its document without them.
"""

from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql(
        "alter table sources add column parameters jsonb not null default '[]', add column timeout_s double precision"
    )
