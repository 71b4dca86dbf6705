"""A name of this database, which separates installations that share a Redis.

Only adds: code of 0007 works on this schema. The name is generated once and is part of every dump of the database.
"""

import secrets

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_BYTES = 10


def upgrade() -> None:
    name = secrets.token_hex(_BYTES)
    run(f"create function installation_id() returns text language sql immutable as $$ select text '{name}' $$")
    run("revoke all on function installation_id() from public")
    run("grant execute on function installation_id() to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
