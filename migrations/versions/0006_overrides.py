"""Overrides of imported tools, and the former names of renamed tools.

Adds tables and lets the application rename a tool. Code of 0005 works on this schema; it shows renamed tools under the
names of their documents until their next import.
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TABLES = """
create table overrides (
    tenant_id text collate "C" not null,
    id text collate "C" not null,
    source_id text collate "C" not null,
    identity text collate "C" not null,
    name text collate "C",
    body bytea not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, id),
    constraint overrides_operation unique (tenant_id, source_id, identity),
    constraint overrides_name unique (tenant_id, name),
    foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);

create table aliases (
    tenant_id text collate "C" not null,
    name text collate "C" not null,
    source_id text collate "C" not null,
    identity text collate "C" not null,
    expires_at timestamptz not null,
    primary key (tenant_id, name),
    foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);
create index aliases_operation on aliases (tenant_id, source_id, identity);
"""


def upgrade() -> None:
    for statement in TABLES.split(";"):
        if statement.strip():
            run(statement)
    for table in ("overrides", "aliases"):
        wall_off(table)
        run(f"grant select, insert, update, delete on {table} to gateway_app")
    run("grant update (tool) on operations to gateway_app")


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
