"""Exposure of the tools of a live source: as tools, by query tools, or both.

Only adds: code of earlier revisions lists the tools of every live source.
"""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql(
        "alter table live_sources add column expose text collate \"C\" not null default 'tools'"
        " check (expose in ('tools', 'query', 'both'))"
    )
