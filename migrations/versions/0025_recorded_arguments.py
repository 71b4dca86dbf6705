"""Rules of a tenant's policy for the arguments that its audit trail contains.

Only adds: code of earlier revisions keeps the rules of a policy that it writes, but records no arguments.
"""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("alter table policies add column recorded_arguments jsonb not null default '[]'")
