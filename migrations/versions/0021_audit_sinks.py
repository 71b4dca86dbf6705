"""Sinks of audit trails, and the place in the trail that each has reached.

A place is the last delivered number of each chain: numbers of a chain commit in order, so an entry that commits late is
still behind the place. Only adds: code of earlier revisions works on this schema.
"""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

TABLES = """
create table audit_sinks (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    name text collate "C" not null,
    kind text collate "C" not null check (kind in ('https', 'syslog', 'file')),
    target text not null,
    credential text collate "C",
    enabled boolean not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    delivered bigint not null,
    delivered_at timestamptz,
    failures integer not null,
    fault text,
    primary key (tenant_id, id),
    constraint audit_sinks_name unique (tenant_id, name)
);

create table audit_places (
    tenant_id text collate "C" not null,
    sink_id text collate "C" not null,
    writer text collate "C" not null,
    seq bigint not null,
    primary key (tenant_id, sink_id, writer),
    foreign key (tenant_id, sink_id) references audit_sinks (tenant_id, id) on delete cascade
)
"""


def upgrade() -> None:
    for statement in TABLES.split(";"):
        run(statement)
    for table in ("audit_sinks", "audit_places"):
        own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
        run(f"alter table {table} enable row level security")
        run(f"alter table {table} force row level security")
        run(f"create policy own_rows on {table} using ({own}) with check ({own})")
        run(f"grant select, insert, update, delete on {table} to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
