"""The gateway's client at an issuer's introspection endpoint, and its sealed secret.

Only adds: code of earlier revisions works on this schema, but refuses opaque tokens and does not ask about JWTs.
"""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

SECRETS = """
alter table issuers add column introspection jsonb;
create table introspection_secrets (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    client_id text not null,
    url text not null,
    data_key_id text collate "C" not null,
    sealed bytea not null,
    primary key (tenant_id, id),
    constraint introspection_secrets_issuer
        foreign key (tenant_id, id) references issuers (tenant_id, id) on delete cascade,
    foreign key (tenant_id, data_key_id) references data_keys (tenant_id, id) deferrable initially deferred
)
"""


def upgrade() -> None:
    for statement in SECRETS.split(";"):
        run(statement)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table introspection_secrets enable row level security")
    run("alter table introspection_secrets force row level security")
    run(f"create policy own_rows on introspection_secrets using ({own}) with check ({own})")
    run("grant select, insert, update, delete on introspection_secrets to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
