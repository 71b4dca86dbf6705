"""The secret keys of an installation: which it knows, what needs them, and the re-encryption under the current one.

Only adds: code of earlier revisions works on this schema, and neither registers its secret keys nor checks them.
"""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

TABLES = """
create table secret_keys (
    name text collate "C" primary key,
    known_since timestamptz not null default now(),
    forgotten_at timestamptz,
    retained bytea
);

create table secret_rotation (
    id integer primary key check (id = 1),
    key_name text collate "C" not null,
    started_at timestamptz not null,
    finished_at timestamptz,
    holder text not null default '',
    leased_until timestamptz not null,
    after_slug text collate "C" not null default '',
    tenants_done integer not null default 0,
    values_done bigint not null default 0,
    unreadable bigint not null default 0,
    fault text
);

create table secret_key_holders (
    replica text collate "C" primary key,
    names text[] not null,
    seen_at timestamptz not null
);

create table audit_export_keys (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    public bytea not null,
    primary key (tenant_id, id)
)
"""

OF_OPERATOR = ("secret_keys", "secret_rotation", "secret_key_holders")
SEALED = ("secrets", "credentials", "webhooks", "webhook_endpoints", "approvals", "mcp_tasks", "issuers", "sign_ins")

# The name of the secret key follows the first byte of a wrapped data key and of a retained key.
USES = """
create function secret_key_uses()
returns table (kind text, name text, uses bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    with wrapped as (
        select d.tenant_id, d.id, encode(substring(d.wrapped from 2 for 8), 'hex') as name from public.data_keys d
    ), valid as (
        select k.pepper, k.former_digest, k.former_pepper, k.former_ends_at from public.keys k
        where k.issuer_id is null and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
    )
    select 'data_keys', w.name, count(*) from wrapped w group by 2
    union all
    select 'idempotency_records', encode(substring(i.wrapped from 2 for 8), 'hex'), count(*)
    from public.idempotency_records i group by 2
    union all
    select 'retained_keys', encode(substring(s.retained from 2 for 8), 'hex'), count(*)
    from public.secret_keys s where s.retained is not null group by 2
    union all
    select 'api_keys', coalesce(v.pepper, ''), count(*) from valid v group by 2
    union all
    select 'api_keys', coalesce(v.former_pepper, ''), count(*) from valid v
    where v.former_digest is not null and v.former_ends_at > now() group by 2
SEALED
$$
"""

KEYS_UNDER = """
create function api_keys_under(wanted text, up_to integer)
returns table (slug text, id text, key_name text, last_used_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select t.slug, k.id, k.name, k.last_used_at
    from public.keys k join public.tenants t on t.id = k.tenant_id
    where k.issuer_id is null and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
      and (k.pepper is not distinct from wanted
           or (k.former_ends_at > now() and k.former_pepper is not distinct from wanted))
    order by t.slug, k.id
    limit up_to
$$
"""


def upgrade() -> None:
    for statement in TABLES.split(";"):
        run(statement)
    for table in OF_OPERATOR:
        protect(table, "nullif(current_setting('app.tenant', true), '') is null")  # guard: operator-tables
        run(f"grant select, insert, update, delete on {table} to gateway_app")
    protect("audit_export_keys", "tenant_id = nullif(current_setting('app.tenant', true), '')")
    run("grant select, insert on audit_export_keys to gateway_app")
    for table in ("data_keys", "idempotency_records", *(table for table in SEALED if table != "issuers")):
        run(f"create policy seen_by_definer on {table} for select to gateway_definer using (true)")
    run("create policy seen_by_definer on secret_keys for select to gateway_definer using (true)")
    run("grant select (tenant_id, id, wrapped) on data_keys to gateway_definer")
    run("grant select (wrapped) on idempotency_records to gateway_definer")
    run("grant select (retained) on secret_keys to gateway_definer")
    for table in SEALED:
        run(f"grant select (tenant_id, data_key_id) on {table} to gateway_definer")
    counted = "".join(
        f"    union all\n    select '{table}', w.name, count(*) from public.{table} x join wrapped w"  # noqa: S608
        f" on w.tenant_id = x.tenant_id and w.id = x.data_key_id group by 2\n"
        for table in SEALED
    )
    open_door("secret_key_uses()", USES.replace("SEALED\n", counted))
    open_door("api_keys_under(text, integer)", KEYS_UNDER)


def protect(table: str, condition: str) -> None:
    """Enable row-level security: without the condition no row is visible, to the owner neither."""
    run(f"alter table {table} enable row level security")
    run(f"alter table {table} force row level security")
    run(f"create policy own_rows on {table} using ({condition}) with check ({condition})")


def open_door(signature: str, definition: str) -> None:
    """Create a function for the application that runs as `gateway_definer`, which may read what its policies permit."""
    run(definition)
    run(f"revoke all on function {signature} from public")
    run(f"grant execute on function {signature} to gateway_app")
    # The new owner of a function needs the right to create one at that moment.
    run("grant create on schema public to gateway_definer")
    run(f"alter function {signature} owner to gateway_definer")
    run("revoke create on schema public from gateway_definer")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
