"""Ceilings of a tenant's limits, set by the operator; a null is the installation's default.

Only adds: code of 0010 works on this schema, without ceilings.
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TABLE = """
create table ceilings (
    tenant_id text collate "C" primary key references tenants (id) on delete cascade,
    calls_per_second double precision check (calls_per_second > 0),
    burst integer check (burst > 0),
    concurrency integer check (concurrency > 0),
    sessions integer check (sessions > 0),
    streams integer check (streams > 0),
    primitives integer check (primitives > 0),
    version bigint not null
)
"""


def upgrade() -> None:
    run(TABLE)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table ceilings enable row level security")
    run("alter table ceilings force row level security")
    run(f"create policy own_rows on ceilings using ({own}) with check ({own})")
    run("grant select, insert, update on ceilings to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
