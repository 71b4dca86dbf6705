"""The operator's sets of manifests, apart from those of a tenant's admins.

Only adds: code of earlier revisions works on this schema. What it stores belongs to sets of admins.
"""

from alembic import op

revision = "0055"
down_revision = "0054"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("alter table owned_objects add column is_operators boolean not null default false")
