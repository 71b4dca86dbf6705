"""Issuers whose access tokens must be bound to a key of the client.

Only adds: code of earlier revisions keeps the member when it changes an issuer, and accepts bearer tokens of it.
"""

from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("alter table issuers add column requires_dpop boolean not null default false")
