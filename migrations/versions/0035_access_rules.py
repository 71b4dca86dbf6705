"""Access rules of tenants.

Only adds: code of earlier revisions works on this schema, but does not apply the rules.
"""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

TABLE = """
create table access_rules (
    tenant_id text collate "C" primary key references tenants (id) on delete cascade,
    default_effect text not null,
    rules jsonb not null,
    version bigint not null,
    updated_at timestamptz not null
)
"""


def upgrade() -> None:
    run(TABLE)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table access_rules enable row level security")
    run("alter table access_rules force row level security")
    run(f"create policy own_rows on access_rules using ({own}) with check ({own})")
    run("grant select, insert, update, delete on access_rules to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
