"""The gateway's own client at an issuer, and the sign-ins of people with it.

Only adds: code of earlier revisions works on this schema, but does not serve the pages of sign-in.
"""

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

SIGN_INS = """
alter table issuers add column sign_in jsonb;
alter table issuers add column sign_in_secret bytea;
alter table issuers add column data_key_id text collate "C";
alter table issuers add constraint issuers_data_key foreign key (tenant_id, data_key_id)
    references data_keys (tenant_id, id) deferrable initially deferred;
create table sign_ins (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    issuer_id text collate "C" not null,
    person_id text collate "C" not null,
    subject text not null,
    groups text[] not null,
    scopes text[] not null,
    requested_scopes text[] not null,
    data_key_id text collate "C" not null,
    sealed bytea not null,
    created_at timestamptz not null,
    checked_at timestamptz not null,
    session_ends_at timestamptz not null,
    lease text,
    leased_until timestamptz,
    primary key (tenant_id, id),
    constraint sign_ins_issuer foreign key (tenant_id, issuer_id) references issuers (tenant_id, id) on delete cascade,
    constraint sign_ins_person foreign key (tenant_id, person_id) references keys (tenant_id, id) on delete cascade,
    foreign key (tenant_id, data_key_id) references data_keys (tenant_id, id) deferrable initially deferred
);
create index sign_ins_of_person on sign_ins (tenant_id, person_id, created_at);
create index sign_ins_ended on sign_ins (tenant_id, session_ends_at)
"""

# The sealed secret is read by its own query only.
ISSUERS_BY_SLUG = """
create function issuers_by_slug(wanted text)
returns table (slug text, tenant_id text, issuer jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select t.slug, t.id, to_jsonb(i) - 'sign_in_secret' - 'data_key_id'
    from public.tenants t join public.issuers i on i.tenant_id = t.id
    where t.slug = wanted and i.enabled
    order by i.id
$$
"""


def upgrade() -> None:
    for statement in SIGN_INS.split(";"):
        run(statement)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table sign_ins enable row level security")
    run("alter table sign_ins force row level security")
    run(f"create policy own_rows on sign_ins using ({own}) with check ({own})")
    run("grant select, insert, update, delete on sign_ins to gateway_app")
    run("drop function issuers_by_slug(text)")
    open_door("issuers_by_slug(text)", ISSUERS_BY_SLUG)


def open_door(signature: str, definition: str) -> None:
    """Create a function for the application that runs as `gateway_definer`, which may read what its policies permit."""
    run(definition)
    run(f"revoke all on function {signature} from public")
    run(f"grant execute on function {signature} to gateway_app")
    # The new owner of a function needs the right to create one at that moment.
    run("grant create on schema public to gateway_definer")
    run(f"alter function {signature} owner to gateway_definer")
    run("revoke create on schema public from gateway_definer")


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
