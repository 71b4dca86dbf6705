"""Sealed responses to POST requests of the admin API with an `Idempotency-Key`, kept for 24 hours.

Only adds: code of earlier revisions works on this schema and ignores the header.
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TABLE = """
create table idempotency_records (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    is_operators boolean not null,
    wrapped bytea not null,
    request bytea not null,
    attempt text collate "C" not null,
    leased_until timestamptz not null,
    is_done boolean not null default false,
    answer bytea,
    expires_at timestamptz not null,
    primary key (tenant_id, id)
)
"""


def upgrade() -> None:
    run(TABLE)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table idempotency_records enable row level security")
    run("alter table idempotency_records force row level security")
    run(f"create policy own_rows on idempotency_records using ({own}) with check ({own})")
    run("grant select, insert, update, delete on idempotency_records to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
