"""The installation as the owner of operator keys and of an audit trail, and the creators of tenants.

The installation gets a row of `tenants` with its first change, so that row-level security, hash chains, encryption and
keys are those of tenants. `list_tenants` excludes it, and no path can name it, also on replicas of an earlier release.
Such a replica reads an operator key as a key without scopes. Only adds.
"""

from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None

OPERATOR_KEYS = """
create table operator_keys (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    name text collate "C" not null,
    members bytea not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, id),
    constraint operator_keys_name unique (tenant_id, name)
)
"""

LIST_TENANTS = """
create function list_tenants(wanted_slug text, after_slug text, up_to integer)
returns table (id text, slug text, name text, revision bigint, created_at timestamptz, created_by text)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select t.id, t.slug, t.name, t.revision, t.created_at, t.created_by
    from public.tenants t
    where (wanted_slug is null or t.slug = wanted_slug) and (after_slug is null or t.slug > after_slug)
      and t.id <> '_installation'
    order by t.slug
    limit up_to
$$
"""

SLUGS = """
create function slugs_of_tenants(wanted text[])
returns table (id text, slug text)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select t.id, t.slug from public.tenants t where t.id = any(wanted) and t.id <> '_installation'
$$
"""


def upgrade() -> None:
    run("alter table tenants add column created_by text")
    run("drop function list_tenants(text, text, integer)")
    open_door("list_tenants(text, text, integer)", LIST_TENANTS)
    open_door("slugs_of_tenants(text[])", SLUGS)
    run("create policy keeps_installation on tenants as restrictive for delete using (id <> '_installation')")
    run(OPERATOR_KEYS)
    wall_off("operator_keys")


def wall_off(table: str) -> None:
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run(f"alter table {table} enable row level security")
    run(f"alter table {table} force row level security")
    run(f"create policy own_rows on {table} using ({own}) with check ({own})")
    run(f"grant select, insert, update, delete on {table} to gateway_app")


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
