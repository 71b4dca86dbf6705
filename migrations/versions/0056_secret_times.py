"""The time of the newest secret of keys, credentials, clients, webhooks and webhook endpoints.

Only adds: code of earlier revisions works on this schema. Rows that it writes have no time, and a secret that it
rotates keeps the time of the one before.
"""

from alembic import op

revision = "0056"
down_revision = "0055"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("keys", "credentials", "oauth_clients", "webhooks", "webhook_endpoints"):
        op.get_bind().exec_driver_sql(f"alter table {table} add column secret_at timestamptz")
