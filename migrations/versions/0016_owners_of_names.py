"""Tenants with primitives of given names, which code registers: one query for all tenants.

The function has the rights of its caller and sets each tenant in turn, so row-level security applies to every row that
it reads. Only adds: code of 0015 works on this schema.
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

SIGNATURE = "owners_of_names(text[], text[], text[])"
FUNCTION = """
create function owners_of_names(slugs text[], kinds text[], names text[])
returns table (tenant_id text, slug text, kind text, name text, owner text)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    one record;
begin
    for one in
        select t.id, t.slug from public.list_tenants(null, null, null) t where slugs is null or t.slug = any(slugs)
    loop
        perform set_config('app.tenant', one.id, true);
        return query
            select one.id, one.slug, w.kind, w.name, 'custom'
            from unnest(kinds, names) w(kind, name)
            join public.primitives p on p.tenant_id = one.id and p.kind = w.kind and p.name = w.name
            union all
            select one.id, one.slug, w.kind, w.name, 'source:' || s.name
            from unnest(kinds, names) w(kind, name)
            join public.operations o on o.tenant_id = one.id and o.tool = w.name
            join public.sources s on s.tenant_id = one.id and s.id = o.source_id
            where w.kind = 'tool';
    end loop;
    perform set_config('app.tenant', '', true);
end
$$
"""


def upgrade() -> None:
    run(FUNCTION)
    run(f"revoke all on function {SIGNATURE} from public")
    run(f"grant execute on function {SIGNATURE} to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
