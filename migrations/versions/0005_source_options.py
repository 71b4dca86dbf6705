"""Options of a source: rules that select its operations, and output schemas of its tools.

Only adds: code of 0004 works on this schema; a source that it writes takes every operation and lists no output schemas.
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
