"""One sealed anchor per tenant for the audit trail, and the time until which unsealed state in Redis is accepted.

Only adds: code of 0010 works on this schema. It signs in its own chains and creates no anchor; the first signature by
newer code adopts such a tenant. Like the entries, anchors have no foreign key: they outlive their tenant.

`unsealed_until()` is a constant. If tenants exist, it is a day after this migration, since replicas of the previous
release store sessions without seals. On a new installation it is in the past from the beginning.
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TABLE = """
create table audit_anchors (
    tenant_id text collate "C" primary key,
    kind text not null check (kind in ('created', 'adopted', 'broken')),
    at_us bigint not null,
    number bigint not null,
    head bytea not null,
    mac bytea not null
)
"""
# Row-level security hides tenants from the owner of the schema; the size of the table shows if there ever was one.
UNTIL = """
do $$
declare
    until bigint := 0;
begin
    if pg_relation_size('public.tenants') > 0 then
        until := extract(epoch from now() + interval '1 day')::bigint;
    end if;
    execute format(
        'create function unsealed_until() returns bigint language sql immutable as %L',
        'select ' || until || '::bigint'
    );
end
$$
"""


def upgrade() -> None:
    run(TABLE)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table audit_anchors enable row level security")
    run("alter table audit_anchors force row level security")
    run(f"create policy own_rows on audit_anchors using ({own}) with check ({own})")
    run("grant select, insert, update on audit_anchors to gateway_app")
    run(UNTIL)
    run("revoke all on function unsealed_until() from public")
    run("grant execute on function unsealed_until() to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
