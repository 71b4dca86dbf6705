"""Full input schemas of imported tools whose definition lists a shortened one.

Only adds: code of earlier revisions validates the calls of such tools against the shortened schema, which accepts more.
"""

from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("alter table operations add column input_schema bytea")
