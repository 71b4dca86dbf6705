"""The slugs and last revisions of deleted tenants, by which the operator finds and verifies their audit trails.

A trigger stores them, so that replicas of an earlier release do too. Tenants that were deleted before this migration
are found by their ids only. Only adds.
"""

from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None

TABLE = """
create table deleted_tenants (
    tenant_id text collate "C" primary key,
    slug text collate "C" not null,
    revision bigint not null,
    deleted_at timestamptz not null
)
"""

KEPT = """
create function tenant_deleted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    insert into public.deleted_tenants (tenant_id, slug, revision, deleted_at)
    values (old.id, old.slug, old.revision, now())
    on conflict do nothing;
    return null;
end
$$
"""

LISTED = """
create function list_deleted_tenants(wanted_slug text, after_slug text, after_id text, up_to integer)
returns table (tenant_id text, slug text, revision bigint, deleted_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select d.tenant_id, d.slug, d.revision, d.deleted_at
    from public.deleted_tenants d
    where (wanted_slug is null or d.slug = wanted_slug)
      and (after_slug is null or (d.slug, d.tenant_id) > (after_slug, after_id))
    order by d.slug, d.tenant_id
    limit up_to
$$
"""


def upgrade() -> None:
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run(TABLE)
    run("create index deleted_tenants_slug on deleted_tenants (slug, tenant_id)")
    run("alter table deleted_tenants enable row level security")
    run("alter table deleted_tenants force row level security")
    run(f"create policy own_rows on deleted_tenants using ({own}) with check ({own})")
    run("grant select, insert on deleted_tenants to gateway_app")
    run("grant select on deleted_tenants to gateway_definer")
    run("create policy seen_by_definer on deleted_tenants for select to gateway_definer using (true)")
    run(KEPT)
    run("create trigger tenant_deleted after delete on tenants for each row execute function tenant_deleted()")
    run(LISTED)
    run("revoke all on function list_deleted_tenants from public")
    run("grant execute on function list_deleted_tenants to gateway_app")
    # The new owner of a function needs the right to create one at that moment.
    run("grant create on schema public to gateway_definer")
    run("alter function list_deleted_tenants owner to gateway_definer")
    run("revoke create on schema public from gateway_definer")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
