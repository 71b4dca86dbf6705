"""Approvals: decisions of a person about one call of another person, with the sealed request.

The partial unique index makes equal calls share one open approval. Only adds: code of 0017 works on this schema.
"""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

TABLE = """
create table approvals (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    state text collate "C" not null check (
        state in ('pending', 'approved', 'denied', 'expired', 'superseded', 'running', 'done', 'unknown')
    ),
    fingerprint bytea not null,
    requester text collate "C" not null,
    subject text collate "C" not null,
    key_id text collate "C" not null,
    profile text collate "C",
    action text collate "C" not null,
    tool text collate "C" not null,
    tool_digest text collate "C" not null,
    policy_version bigint not null,
    digest bytea not null,
    credentials bytea not null,
    data_key_id text collate "C" not null,
    sealed bytea not null,
    correlation_id text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    decided_by text collate "C",
    decider_subject text collate "C",
    decided_at timestamptz,
    comment text not null,
    started_at timestamptz,
    ended_at timestamptz,
    outcome text collate "C",
    claim text collate "C",
    leased_until timestamptz,
    version bigint not null,
    primary key (tenant_id, id),
    foreign key (tenant_id, data_key_id) references data_keys (tenant_id, id) deferrable initially deferred
);

create unique index approvals_open on approvals (tenant_id, fingerprint)
    where state in ('pending', 'approved', 'running');

create index approvals_by_time on approvals (tenant_id, state, created_at, id)
"""


def upgrade() -> None:
    for statement in TABLE.split(";"):
        run(statement)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table approvals enable row level security")
    run("alter table approvals force row level security")
    run(f"create policy own_rows on approvals using ({own}) with check ({own})")
    run("grant select, insert, update, delete on approvals to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
