"""Retention of audit trails: the setting of each tenant, and signed records of what was removed.

The application may add a record, and cannot delete an entry. `cut_audit` deletes exactly the entries that a stored
record names, none younger than a day by the clock of the database. It runs under the row-level security of the
transaction's tenant. Only adds: code of earlier revisions works on this schema, and reports entries missing after the
first cut.
"""

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

TABLES = """
create table audit_retention (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    days integer check (days > 0),
    version bigint not null,
    fault text,
    primary key (tenant_id)
);

create table audit_cuts (
    tenant_id text collate "C" not null,
    writer text collate "C" not null,
    first bigint not null check (first > 0),
    last bigint not null check (last >= first),
    revision bigint not null,
    oldest_us bigint not null,
    newest_us bigint not null,
    head bytea not null,
    content bytea not null,
    anchor text not null,
    at_us bigint not null,
    signer text not null,
    signature bytea not null,
    primary key (tenant_id, writer, last),
    constraint audit_cuts_revision unique (tenant_id, revision, writer)
)
"""

GRANTS = {"audit_retention": "select, insert, update, delete", "audit_cuts": "select, insert"}

CUT_AUDIT = """
create function cut_audit(cut_writer text, cut_last bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    removed bigint;
begin
    delete from public.audit_entries e using public.audit_cuts c
    where c.tenant_id = nullif(current_setting('app.tenant', true), '') and c.writer = cut_writer and c.last = cut_last
      and e.tenant_id = c.tenant_id and e.writer = c.writer and e.seq between c.first and c.last
      and e.at < now() - interval '1 day';
    get diagnostics removed = row_count;
    return removed;
end
$$
"""


def upgrade() -> None:
    for statement in TABLES.split(";"):
        run(statement)
    for table, rights in GRANTS.items():
        own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
        run(f"alter table {table} enable row level security")
        run(f"alter table {table} force row level security")
        run(f"create policy own_rows on {table} using ({own}) with check ({own})")
        run(f"grant {rights} on {table} to gateway_app")
    run("grant select on audit_cuts to gateway_definer")
    run("grant select, delete on audit_entries to gateway_definer")
    run(CUT_AUDIT)
    run("revoke all on function cut_audit from public")
    run("grant execute on function cut_audit to gateway_app")
    # The new owner of a function needs the right to create one at that moment.
    run("grant create on schema public to gateway_definer")
    run("alter function cut_audit owner to gateway_definer")
    run("revoke create on schema public from gateway_definer")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
