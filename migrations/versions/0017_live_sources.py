"""Live sources, and the primitives that were discovered at them.

A row of `live_primitives` remains when its source is detached, so that a definition that changes meanwhile is
noticed. Only adds: code of 0016 works on this schema.
"""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

TABLES = """
create table live_sources (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    name text collate "C" not null,
    kind text collate "C" not null,
    settings jsonb not null,
    prefix text not null,
    credential text collate "C",
    include text[] not null,
    exclude text[] not null,
    safety jsonb not null,
    accepts_changes boolean not null,
    enabled boolean not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    state text collate "C" not null check (state in ('detached', 'attached', 'failed')),
    attachment text collate "C" not null,
    replica text not null,
    title text not null,
    since timestamptz,
    fault text,
    failures integer not null,
    retry_at timestamptz,
    notices text[] not null,
    can_subscribe boolean not null,
    primary key (tenant_id, id),
    constraint live_sources_name unique (tenant_id, name)
);

create table live_primitives (
    tenant_id text collate "C" not null,
    source_id text collate "C" not null,
    family text collate "C" not null check (family in ('tool', 'resource', 'resource_template', 'prompt')),
    remote text collate "C" not null,
    name text collate "C" not null,
    definition bytea not null,
    safety text not null check (safety in ('safe', 'moderate', 'dangerous')),
    reasons text[] not null,
    digest text collate "C" not null,
    accepted_digest text collate "C",
    accepted_definition bytea,
    is_present boolean not null,
    primary key (tenant_id, source_id, family, remote),
    foreign key (tenant_id, source_id) references live_sources (tenant_id, id) on delete cascade
)
"""

SIGNATURE = "list_live_sources()"
FUNCTION = """
create function list_live_sources()
returns table (tenant_id text, id text, kind text)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select s.tenant_id, s.id, s.kind
    from public.live_sources s
    where s.enabled
    order by s.tenant_id, s.id
$$
"""


def upgrade() -> None:
    for statement in TABLES.split(";"):
        run(statement)
    for table in ("live_sources", "live_primitives"):
        wall_off(table)
        run(f"grant select, insert, update, delete on {table} to gateway_app")
    run("grant select (tenant_id, id, kind, enabled) on live_sources to gateway_definer")
    run("create policy seen_by_definer on live_sources for select to gateway_definer using (true)")
    run(FUNCTION)
    run(f"revoke all on function {SIGNATURE} from public")
    run(f"grant execute on function {SIGNATURE} to gateway_app")
    # The new owner of a function needs the right to create one at that moment.
    run("grant create on schema public to gateway_definer")
    run(f"alter function {SIGNATURE} owner to gateway_definer")
    run("revoke create on schema public from gateway_definer")


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
