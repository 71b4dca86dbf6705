"""The set of manifests that owns each object, and a digest of what was applied last.

Only adds: code of earlier revisions works on this schema. An earlier release that removes an object leaves its row; ids
are never used twice, so the row has no effect.
"""

from alembic import op

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None

TABLE = """
create table owned_objects (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    kind text collate "C" not null,
    object_id text collate "C" not null,
    set_name text collate "C" not null,
    digest bytea not null,
    secrets bytea,
    applied_at timestamptz not null,
    primary key (tenant_id, kind, object_id)
)
"""


def upgrade() -> None:
    run(TABLE)
    run("create index owned_objects_of_set on owned_objects (tenant_id, set_name)")
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table owned_objects enable row level security")
    run("alter table owned_objects force row level security")
    run(f"create policy own_rows on owned_objects using ({own}) with check ({own})")
    run("grant select, insert, update, delete on owned_objects to gateway_app")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
