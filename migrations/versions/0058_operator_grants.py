"""Grants: the roles of people and workloads who sign in at issuers of the installation.

Only adds: a replica of an earlier release knows neither the issuers nor the grants of the installation.
"""

from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None

TABLE = """
create table operator_grants (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    name text collate "C" not null,
    members bytea not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, id),
    constraint operator_grants_name unique (tenant_id, name)
)
"""


def upgrade() -> None:
    run(TABLE)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table operator_grants enable row level security")
    run("alter table operator_grants force row level security")
    run(f"create policy own_rows on operator_grants using ({own}) with check ({own})")
    run("grant select, insert, update, delete on operator_grants to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
