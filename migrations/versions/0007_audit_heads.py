"""Signed heads of the audit trail's hash chains, by which a truncated chain is detected.

Only adds: code of 0006 works on this schema; its entries are signed by the first newer replica that reads them. Like
the entries, signatures have no foreign key: they outlive their tenant.
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLE = """
create table audit_heads (
    tenant_id text collate "C" not null,
    signer text collate "C" not null,
    number bigint not null,
    writer text collate "C" not null,
    seq bigint not null,
    head bytea not null,
    mac bytea not null,
    primary key (tenant_id, signer, number)
);
create index audit_heads_writer on audit_heads (tenant_id, writer, seq);
"""


def upgrade() -> None:
    for statement in TABLE.split(";"):
        if statement.strip():
            run(statement)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table audit_heads enable row level security")
    run("alter table audit_heads force row level security")
    run(f"create policy own_rows on audit_heads using ({own}) with check ({own})")
    run("grant select, insert on audit_heads to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
