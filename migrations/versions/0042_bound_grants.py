"""Grants whose refresh tokens are bound to a key of the client.

Only adds: code of earlier revisions issues bearer tokens under such a grant, and accepts bound tokens as bearer tokens.
"""

from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("alter table grants add column thumbprint text")
