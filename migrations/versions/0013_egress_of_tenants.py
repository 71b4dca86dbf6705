"""The private upstreams that the operator lets each tenant reach, beside those in GATEWAY_EGRESS_ALLOW.

Only adds: code of earlier revisions works on this schema and permits none of them.
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TABLE = """
create table egress (
    tenant_id text collate "C" primary key references tenants (id) on delete cascade,
    allow text[] not null,
    version bigint not null
)
"""


def upgrade() -> None:
    run(TABLE)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table egress enable row level security")
    run("alter table egress force row level security")
    run(f"create policy own_rows on egress using ({own}) with check ({own})")
    run("grant select, insert, update, delete on egress to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
