"""Tasks: calls of tools that continue after the response to their request.

`call`, `rounds` and `outcome` are sealed with the tenant's data key. Only adds: code of earlier revisions works on this
schema.
"""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

TABLE = """
create table mcp_tasks (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    subject text not null,
    profile text not null,
    key_id text collate "C" not null,
    tool text not null,
    correlation_id text not null,
    state text collate "C" not null check (state in ('working', 'input_required', 'completed', 'failed', 'cancelled')),
    message text not null default '',
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    expires_at timestamptz not null,
    holder text collate "C" not null,
    leased_until timestamptz not null,
    has_begun boolean not null,
    data_key_id text collate "C" not null,
    call bytea not null,
    rounds bytea not null,
    outcome bytea,
    primary key (tenant_id, id),
    foreign key (tenant_id, data_key_id) references data_keys (tenant_id, id) deferrable initially deferred
)
"""


def upgrade() -> None:
    run(TABLE)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table mcp_tasks enable row level security")
    run("alter table mcp_tasks force row level security")
    run(f"create policy own_rows on mcp_tasks using ({own}) with check ({own})")
    run("grant select, insert, update, delete on mcp_tasks to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
