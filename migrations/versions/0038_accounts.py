"""Accounts of users at upstreams, with the sealed tokens that the upstreams issued.

Only adds: code of earlier revisions cannot read a credential of the kind `user`, so it sends none.
"""

from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

ACCOUNTS = """
create table accounts (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    owner_id text collate "C" not null,
    subject text not null,
    credential_id text collate "C" not null,
    terms text collate "C" not null,
    scopes text[] not null,
    state text not null,
    data_key_id text collate "C" not null,
    sealed bytea not null,
    created_at timestamptz not null,
    refreshed_at timestamptz not null,
    lease text,
    leased_until timestamptz,
    version bigint not null,
    primary key (tenant_id, id),
    constraint accounts_of_owner unique (tenant_id, owner_id, credential_id),
    constraint accounts_owner foreign key (tenant_id, owner_id) references keys (tenant_id, id) on delete cascade,
    constraint accounts_credential foreign key (tenant_id, credential_id)
        references credentials (tenant_id, id) on delete cascade,
    foreign key (tenant_id, data_key_id) references data_keys (tenant_id, id) deferrable initially deferred
);
create index accounts_of_credential on accounts (tenant_id, credential_id)
"""


def upgrade() -> None:
    for statement in ACCOUNTS.split(";"):
        run(statement)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table accounts enable row level security")
    run("alter table accounts force row level security")
    run(f"create policy own_rows on accounts using ({own}) with check ({own})")
    run("grant select, insert, update, delete on accounts to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
