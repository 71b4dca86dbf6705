"""Profiles and named credentials with row-level security, and further columns of primitives, operations and policies.

Only adds: code of 0001 works on this schema. A primitive that it stores has no assessed level and counts as moderate.
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = """
create table profiles (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    name text collate "C" not null,
    description text not null,
    rules bytea not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, id),
    constraint profiles_name unique (tenant_id, name)
);

create table credentials (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    name text collate "C" not null,
    place text not null check (place in ('header', 'query', 'bearer', 'basic')),
    field text not null,
    origins text[] not null check (cardinality(origins) > 0),
    version bigint not null,
    data_key_id text collate "C" not null,
    sealed bytea not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, id),
    constraint credentials_name unique (tenant_id, name),
    foreign key (tenant_id, data_key_id) references data_keys (tenant_id, id) deferrable initially deferred
);
create index credentials_data_key on credentials (tenant_id, data_key_id);

alter table primitives
    add column assessed text not null default 'moderate' check (assessed in ('safe', 'moderate', 'dangerous')),
    add column reasons text[] not null default '{}',
    add column refers text[] not null default '{}';

alter table operations add column tags text[] not null default '{}';

alter table policies add column http_origins text[];
"""

GRANTS = {
    "profiles": "select, insert, update, delete",
    "credentials": "select, insert, update, delete",
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
