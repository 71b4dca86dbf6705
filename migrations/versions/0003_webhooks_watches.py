"""Signed webhooks by which tenants report changed resources, and HTTP resources that the gateway polls itself.

Only adds: code of earlier revisions works on this schema.
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLES = """
create table webhooks (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    name text collate "C" not null,
    version bigint not null,
    data_key_id text collate "C" not null,
    sealed bytea not null,
    retires_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, id),
    constraint webhooks_name unique (tenant_id, name),
    foreign key (tenant_id, data_key_id) references data_keys (tenant_id, id) deferrable initially deferred
);
create index webhooks_data_key on webhooks (tenant_id, data_key_id);

create table watches (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    uri text collate "C" not null,
    url text not null,
    credential text collate "C",
    interval_s integer not null check (interval_s >= 5),
    version bigint not null,
    etag text,
    last_modified text,
    digest bytea,
    failures integer not null,
    fault text,
    checked_at timestamptz,
    changed_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, id),
    constraint watches_uri unique (tenant_id, uri)
);
"""

GRANTS = {
    "webhooks": "select, insert, update, delete",
    "watches": "select, insert, update, delete",
}


def upgrade() -> None:
    for statement in TABLES.split(";"):
        if statement.strip():
            run(statement)
    for table, rights in GRANTS.items():
        wall_off(table)
        run(f"grant {rights} on {table} to gateway_app")


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
