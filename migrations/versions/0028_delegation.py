"""Credentials that name the caller; security schemes that use a named credential, and calls of live sources.

Only adds: code of earlier revisions cannot open a credential with a delegation, so it sends none.
"""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    db = op.get_bind()
    db.exec_driver_sql("alter table credentials add column delegation jsonb")
    db.exec_driver_sql('alter table live_sources add column caller_credential text collate "C"')
    db.exec_driver_sql('alter table secrets add column credential text collate "C"')
