"""Outbound webhooks of tenants: their endpoints, and the deliveries that wait or were made.

Only adds: code of earlier revisions works on this schema.
"""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

TABLES = """
create table webhook_endpoints (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    name text collate "C" not null,
    url text not null,
    kinds text[] not null,
    description text not null,
    enabled boolean not null,
    notice text,
    failures integer not null,
    failing_since timestamptz,
    held_until timestamptz,
    version bigint not null,
    data_key_id text collate "C" not null,
    sealed bytea not null,
    retires_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, id),
    constraint webhook_endpoints_name unique (tenant_id, name),
    foreign key (tenant_id, data_key_id) references data_keys (tenant_id, id) deferrable initially deferred
);
create index webhook_endpoints_data_key on webhook_endpoints (tenant_id, data_key_id);

create table webhook_deliveries (
    tenant_id text collate "C" not null,
    id text collate "C" not null,
    endpoint_id text collate "C" not null,
    kind text collate "C" not null,
    payload bytea not null,
    state text collate "C" not null check (state in ('pending', 'delivered', 'failed')),
    attempts integer not null,
    status integer,
    error text,
    due_at timestamptz not null,
    expires_at timestamptz not null,
    created_at timestamptz not null,
    attempted_at timestamptz,
    ended_at timestamptz,
    primary key (tenant_id, id),
    foreign key (tenant_id, endpoint_id) references webhook_endpoints (tenant_id, id) on delete cascade
);
create index webhook_deliveries_due on webhook_deliveries (tenant_id, endpoint_id, state, due_at);
create index webhook_deliveries_created on webhook_deliveries (tenant_id, endpoint_id, created_at, id);
"""


def upgrade() -> None:
    for statement in TABLES.split(";"):
        if statement.strip():
            run(statement)
    for table in ("webhook_endpoints", "webhook_deliveries"):
        wall_off(table)
        run(f"grant select, insert, update, delete on {table} to gateway_app")


def wall_off(table: str) -> None:
    """Enable row-level security: only rows of the transaction's tenant are visible, for the owner too; without one,
    none.
    """
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run(f"alter table {table} enable row level security")
    run(f"alter table {table} force row level security")
    run(f"create policy own_rows on {table} using ({own}) with check ({own})")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
