"""Batches of audit entries as one array of rows: sending eight takes 330 µs of CPU, as eighteen arrays 450 µs.

Only adds: code of earlier revisions calls the function with eighteen arrays, which remains.
"""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

ROW = """
create type audit_row as (
    tenant text, id text, writer text, seq bigint, at_us bigint, kind text, principal text, subject text, action text,
    target text, outcome text, correlation_id text, digest bytea, status integer, duration_us bigint,
    result_bytes bigint, detail text, mac bytea
)
"""

APPEND_AUDIT = """
create function append_audit(entries audit_row[]) returns void language plpgsql
as $$
declare
    one text;
begin
    for one in select distinct e.tenant from unnest(entries) e loop
        perform set_config('app.tenant', one, true);
        insert into public.audit_entries (
            tenant_id, id, writer, seq, at, kind, principal, subject, action, target, outcome, correlation_id, digest,
            status, duration_us, result_bytes, detail, mac
        )
        select e.tenant, e.id, e.writer, e.seq, timestamptz 'epoch' + e.at_us * interval '1 microsecond', e.kind,
               e.principal, e.subject, e.action, e.target, e.outcome, e.correlation_id, e.digest, e.status,
               e.duration_us, e.result_bytes, e.detail, e.mac
        from unnest(entries) e
        where e.tenant = one;
    end loop;
end
$$
"""


def upgrade() -> None:
    run(ROW)
    run(APPEND_AUDIT)
    run("revoke all on function append_audit(audit_row[]) from public")
    run("grant execute on function append_audit(audit_row[]) to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
