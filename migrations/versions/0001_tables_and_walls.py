"""The first tables, row-level security on all of them, and the three functions that bypass it.

Requires the roles `gateway_app` and `gateway_definer`, which `gateway.store.database.migrations` creates. Audit entries
have no foreign key: they outlive their tenant, so that removing a tenant does not remove its audit trail.
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
create table tenants (
    id text collate "C" primary key,
    slug text collate "C" not null unique,
    name text not null,
    revision bigint not null,
    created_at timestamptz not null
);

create table keys (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null unique,
    name text not null,
    scopes text[] not null,
    subject text not null,
    profile text,
    digest bytea not null,
    created_at timestamptz not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    version bigint not null,
    primary key (tenant_id, id)
);

create table sources (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    name text collate "C" not null,
    title text not null,
    base_url text,
    prefix text,
    expose text not null check (expose in ('tools', 'query', 'both')),
    url text,
    active_version integer not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, id),
    constraint sources_name unique (tenant_id, name)
);

create table source_versions (
    tenant_id text collate "C" not null,
    source_id text collate "C" not null,
    number integer not null,
    document bytea not null,
    report bytea not null,
    created_at timestamptz not null default now(),
    primary key (tenant_id, source_id, number),
    foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);

create table operations (
    tenant_id text collate "C" not null,
    id text collate "C" not null,
    source_id text collate "C" not null,
    identity text not null,
    operation_id text,
    tool text collate "C" not null,
    definition bytea not null,
    plan bytea not null,
    safety text not null check (safety in ('safe', 'moderate', 'dangerous')),
    primary key (tenant_id, id),
    constraint operations_tool unique (tenant_id, tool),
    foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);
create index operations_source on operations (tenant_id, source_id);

create table primitives (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    kind text not null check (kind in ('tool', 'resource', 'resource_template', 'prompt')),
    name text collate "C" not null,
    definition bytea not null,
    handler bytea not null,
    safety text check (safety in ('safe', 'moderate', 'dangerous')),
    enabled boolean not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, id),
    constraint primitives_name unique (tenant_id, kind, name)
);

create table policies (
    tenant_id text collate "C" primary key references tenants (id) on delete cascade,
    safe text not null check (safe in ('allow', 'confirm', 'approve', 'deny')),
    moderate text not null check (moderate in ('allow', 'confirm', 'approve', 'deny')),
    dangerous text not null check (dangerous in ('allow', 'confirm', 'approve', 'deny')),
    calls_per_second double precision not null,
    burst integer not null,
    concurrency integer not null,
    sessions integer not null,
    streams integer not null,
    primitives integer not null,
    version bigint not null
);

create table data_keys (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    wrapped bytea not null,
    created_at timestamptz not null default now(),
    primary key (tenant_id, id)
);

create table secrets (
    tenant_id text collate "C" not null,
    id text collate "C" not null,
    source_id text collate "C" not null,
    scheme text not null,
    version bigint not null,
    data_key_id text collate "C" not null,
    sealed bytea not null,
    primary key (tenant_id, id),
    constraint secrets_scheme unique (tenant_id, source_id, scheme),
    foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade,
    foreign key (tenant_id, data_key_id) references data_keys (tenant_id, id) deferrable initially deferred
);

create table due_work (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    kind text not null,
    due_at timestamptz not null,
    primary key (tenant_id, id)
);
create index due_work_due_at on due_work (due_at);

create table audit_entries (
    tenant_id text collate "C" not null,
    id text collate "C" not null,
    writer text collate "C" not null,
    seq bigint not null,
    at timestamptz not null,
    kind text not null,
    principal text not null,
    subject text not null,
    action text not null,
    target text not null,
    outcome text not null,
    correlation_id text not null,
    digest bytea not null,
    status integer,
    duration_us bigint not null,
    result_bytes bigint not null,
    detail text not null,
    mac bytea not null,
    primary key (tenant_id, id),
    constraint audit_entries_chain unique (tenant_id, writer, seq)
);
"""

GRANTS = {
    "tenants": "select, insert, update, delete",
    "keys": "select, insert, update, delete",
    "sources": "select, insert, update, delete",
    "source_versions": "select, insert, delete",
    "operations": "select, insert, delete",
    "primitives": "select, insert, update, delete",
    "policies": "select, insert, update, delete",
    "data_keys": "select, insert, update, delete",
    "secrets": "select, insert, update, delete",
    "due_work": "select, insert, update, delete",
    "audit_entries": "select, insert",  # guard: audit-append-only
}

SEEN_BY_DEFINER = ("tenants", "keys", "due_work")

FUNCTIONS = {
    "key_by_id(text)": """
create function key_by_id(wanted text)
returns table (
    tenant_id text, id text, name text, scopes text[], subject text, profile text, digest bytea,
    created_at timestamptz, expires_at timestamptz, revoked_at timestamptz, version bigint, slug text
)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select k.tenant_id, k.id, k.name, k.scopes, k.subject, k.profile, k.digest,
           k.created_at, k.expires_at, k.revoked_at, k.version, t.slug
    from public.keys k join public.tenants t on t.id = k.tenant_id
    where k.id = wanted
$$
""",
    "list_tenants(text, text, integer)": """
create function list_tenants(wanted_slug text, after_slug text, up_to integer)
returns table (id text, slug text, name text, revision bigint, created_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select t.id, t.slug, t.name, t.revision, t.created_at
    from public.tenants t
    where (wanted_slug is null or t.slug = wanted_slug) and (after_slug is null or t.slug > after_slug)
    order by t.slug
    limit up_to
$$
""",
    "list_due_work(timestamptz, integer)": """
create function list_due_work(until timestamptz, up_to integer)
returns table (tenant_id text, id text, kind text, due_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select w.tenant_id, w.id, w.kind, w.due_at
    from public.due_work w
    where w.due_at <= until
    order by w.due_at, w.tenant_id, w.id
    limit up_to
$$
""",
}

APPEND_AUDIT = """
create function append_audit(
    tenants text[], ids text[], writers text[], seqs bigint[], ats bigint[], kinds text[], principals text[],
    subjects text[], actions text[], targets text[], outcomes text[], correlation_ids text[], digests bytea[],
    statuses integer[], durations bigint[], sizes bigint[], details text[], macs bytea[]
)
returns void language plpgsql
as $$
declare
    one text;
begin
    for one in select distinct t from unnest(tenants) t loop
        perform set_config('app.tenant', one, true);
        insert into public.audit_entries (
            tenant_id, id, writer, seq, at, kind, principal, subject, action, target, outcome, correlation_id, digest,
            status, duration_us, result_bytes, detail, mac
        )
        select r.tenant, r.id, r.writer, r.seq, timestamptz 'epoch' + r.at * interval '1 microsecond', r.kind,
               r.principal, r.subject, r.action, r.target, r.outcome, r.correlation_id, r.digest, r.status, r.duration,
               r.size, r.detail, r.mac
        from unnest(
            tenants, ids, writers, seqs, ats, kinds, principals, subjects, actions, targets, outcomes,
            correlation_ids, digests, statuses, durations, sizes, details, macs
        ) as r (
            tenant, id, writer, seq, at, kind, principal, subject, action, target, outcome, correlation_id, digest,
            status, duration, size, detail, mac
        )
        where r.tenant = one;
    end loop;
end
$$
"""


def upgrade() -> None:
    run(TABLES)
    for table, rights in GRANTS.items():
        wall_off(table, column="id" if table == "tenants" else "tenant_id")
        run(f"grant {rights} on {table} to gateway_app")
    run("grant usage on schema public to gateway_app, gateway_definer")
    run("grant select on alembic_version to gateway_app")
    for table in SEEN_BY_DEFINER:
        run(f"grant select on {table} to gateway_definer")
        run(f"create policy seen_by_definer on {table} for select to gateway_definer using (true)")
    for signature, definition in FUNCTIONS.items():
        open_door(signature, definition)
    run(APPEND_AUDIT)
    run("revoke all on function append_audit from public")
    run("grant execute on function append_audit to gateway_app")


def wall_off(table: str, *, column: str) -> None:
    """Enable row-level security: only rows of the transaction's tenant are visible, for the owner too; without one,
    none.
    """
    mine = f"{column} = nullif(current_setting('app.tenant', true), '')"  # guard: rls-policy
    run(f"alter table {table} enable row level security")  # guard: rls-enabled
    run(f"alter table {table} force row level security")  # guard: rls-forced
    run(f"create policy own_rows on {table} using ({mine}) with check ({mine})")  # guard: rls-check


def open_door(signature: str, definition: str) -> None:
    """Create a function for the application that runs as `gateway_definer`, which may read what its policies permit."""
    run(definition)
    run(f"revoke all on function {signature} from public")  # guard: rls-past-the-wall
    run(f"grant execute on function {signature} to gateway_app")
    # The new owner of a function needs the right to create one at that moment.
    run("grant create on schema public to gateway_definer")
    run(f"alter function {signature} owner to gateway_definer")
    run("revoke create on schema public from gateway_definer")


def run(script: str) -> None:
    """Execute each statement of the script separately, as asyncpg requires; a script with `$$` is one statement."""
    statements = [script] if "$$" in script else script.split(";")
    for statement in statements:
        if statement.strip():
            op.get_bind().exec_driver_sql(statement)
