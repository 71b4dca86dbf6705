"""Refreshed sources: proposals, the state of looks at their URLs, and facts about versions.

Only adds: code of earlier revisions works on this schema, and does not know of proposals, looks or removals.
"""

from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

TABLES = """
alter table sources add column refresh_policy text not null default 'manual'
    check (refresh_policy in ('manual', 'additions'));
alter table sources add column refresh_interval_s integer check (refresh_interval_s > 0);

alter table source_versions add column digest bytea;
alter table source_versions add column tools integer;
alter table source_versions add column origin text check (origin in ('import', 'proposal', 'rollback'));
alter table source_versions add column restored integer;

create table source_proposals (
    tenant_id text collate "C" not null,
    source_id text collate "C" not null,
    number integer not null,
    replaces integer not null,
    origin text not null check (origin in ('url', 'upload')),
    obstacle text,
    digest bytea not null,
    document bytea not null,
    compilation bytea not null,
    review bytea not null,
    created_by text not null,
    created_at timestamptz not null,
    primary key (tenant_id, source_id),
    foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);

create table source_refreshes (
    tenant_id text collate "C" not null,
    source_id text collate "C" not null,
    url text,
    etag text,
    last_modified text,
    digest bytea,
    failures integer not null,
    fault text,
    checked_at timestamptz,
    changed_at timestamptz,
    last_number integer not null,
    refused_digest bytea,
    reported_digest bytea,
    leased_until timestamptz,
    is_wanted boolean not null,
    primary key (tenant_id, source_id),
    foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);
"""


def upgrade() -> None:
    for statement in TABLES.split(";"):
        if statement.strip():
            run(statement)
    rights_on = {"source_proposals": "select, insert, delete", "source_refreshes": "select, insert, update"}
    for table, rights in rights_on.items():
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
