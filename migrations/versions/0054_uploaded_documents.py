"""Documents that are uploaded by digest before manifests name them; each is deleted after two days.

Only adds: code of earlier revisions works on this schema.
"""

from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None

TABLE = """
create table uploaded_documents (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    digest bytea not null,
    document bytea not null,
    is_archive boolean not null,
    expires_at timestamptz not null,
    primary key (tenant_id, digest)
)
"""


def upgrade() -> None:
    run(TABLE)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table uploaded_documents enable row level security")
    run("alter table uploaded_documents force row level security")
    run(f"create policy own_rows on uploaded_documents using ({own}) with check ({own})")
    run("grant select, insert, update, delete on uploaded_documents to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
