"""Rules of a tenant's policy: decisions by tool, source, profile, level and arguments.

Only adds: code of earlier revisions keeps the rules of a policy that it writes, but does not apply them.
"""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("alter table policies add column rules jsonb not null default '[]'")
