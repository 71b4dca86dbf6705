"""Which operations of its document a source takes, and whether its tools list what they answer.

Only adds: code of 0004 works on this schema; what it writes takes every operation and lists no answers.
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql(
        "alter table sources"
        " add column include jsonb not null default '[]',"
        " add column exclude jsonb not null default '[]',"
        " add column output_schemas boolean not null default false"
    )
