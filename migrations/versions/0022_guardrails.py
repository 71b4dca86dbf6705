"""Guardrails: a tenant's checks of calls and results.

Only adds: code of 0021 works on this schema.
"""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

TABLE = """
create table guardrails (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    name text collate "C" not null,
    position integer not null,
    rule bytea not null,
    credential text collate "C",
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, id),
    constraint guardrails_name unique (tenant_id, name)
)
"""


def upgrade() -> None:
    run(TABLE)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table guardrails enable row level security")
    run("alter table guardrails force row level security")
    run(f"create policy own_rows on guardrails using ({own}) with check ({own})")
    run("grant select, insert, update, delete on guardrails to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
