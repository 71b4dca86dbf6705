"""Due work, round-robin by tenant, so that the backlog of one tenant cannot fill the whole result.

Only adds: code of 0008 works on this schema and still calls the function with two parameters.
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

SIGNATURE = "list_due_work(timestamptz, integer, integer)"
# guard: work-in-turns
FUNCTION = """
create function list_due_work(until timestamptz, up_to integer, of_each integer)
returns table (tenant_id text, id text, kind text, due_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select w.tenant_id, w.id, w.kind, w.due_at
    from (
        select d.tenant_id, d.id, d.kind, d.due_at,
               row_number() over (partition by d.tenant_id order by d.due_at, d.id) as turn
        from public.due_work d
        where d.due_at <= until
    ) w
    where w.turn <= of_each
    order by w.turn, w.due_at, w.tenant_id, w.id
    limit up_to
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
