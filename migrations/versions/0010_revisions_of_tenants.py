"""The revisions of many tenants' catalogs in one query, which a replica makes every few seconds for those that it
serves.

Only adds: code of 0009 works on this schema.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

SIGNATURE = "tenant_revisions(text[])"
FUNCTION = """
create function tenant_revisions(wanted text[])
returns table (id text, revision bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select t.id, t.revision from public.tenants t where t.id = any(wanted)
$$
"""


def upgrade() -> None:
    run(FUNCTION)
    run(f"revoke all on function {SIGNATURE} from public")
    run(f"grant execute on function {SIGNATURE} to gateway_app")
    # The new owner of a function needs the right to create one at that moment.
    run("grant create on schema public to gateway_definer")
    run(f"alter function {SIGNATURE} owner to gateway_definer")
    run("revoke create on schema public from gateway_definer")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
