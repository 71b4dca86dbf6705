"""Issuers of access tokens, and the people whom they name: rows of `keys` with an issuer.

Only adds: code of earlier revisions works on this schema, but refuses access tokens.
"""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

ISSUERS = """
create table issuers (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    name text collate "C" not null,
    url text collate "C" not null,
    jwks_url text not null,
    audiences text[] not null,
    algorithms text[] not null,
    subject_claim text not null,
    groups_claim text not null,
    rules jsonb not null,
    max_lifetime_s integer not null,
    enabled boolean not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, id),
    constraint issuers_name unique (tenant_id, name),
    constraint issuers_url unique (tenant_id, url)
);
alter table keys add column issuer_id text collate "C";
alter table keys add constraint keys_issuer foreign key (tenant_id, issuer_id)
    references issuers (tenant_id, id) on delete cascade;
create index keys_people on keys (tenant_id, subject) where issuer_id is not null;
create index keys_issuer on keys (tenant_id, issuer_id) where issuer_id is not null
"""

# `least` ignores null. A key ends where the person of its subject was denied.
KEY_BY_ID = """
create function key_by_id(wanted text)
returns table (
    tenant_id text, id text, name text, scopes text[], subject text, profile text, digest bytea,
    created_at timestamptz, expires_at timestamptz, revoked_at timestamptz, version bigint, issuer_id text, slug text
)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select k.tenant_id, k.id, k.name, k.scopes, k.subject, k.profile, k.digest, k.created_at, k.expires_at,
           least(k.revoked_at, (
               select min(p.revoked_at) from public.keys p
               where p.tenant_id = k.tenant_id and p.subject = k.subject and p.issuer_id is not null
           )),
           k.version, k.issuer_id, t.slug
    from public.keys k join public.tenants t on t.id = k.tenant_id
    where k.id = wanted
$$
"""

ISSUERS_BY_SLUG = """
create function issuers_by_slug(wanted text)
returns table (slug text, tenant_id text, issuer jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select t.slug, t.id, to_jsonb(i)
    from public.tenants t join public.issuers i on i.tenant_id = t.id
    where t.slug = wanted and i.enabled
    order by i.id
$$
"""


def upgrade() -> None:
    for statement in ISSUERS.split(";"):
        run(statement)
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    run("alter table issuers enable row level security")
    run("alter table issuers force row level security")
    run(f"create policy own_rows on issuers using ({own}) with check ({own})")
    run("create policy seen_by_definer on issuers for select to gateway_definer using (true)")
    run("grant select, insert, update, delete on issuers to gateway_app")
    run("grant select on issuers to gateway_definer")
    run("drop function key_by_id(text)")
    open_door("key_by_id(text)", KEY_BY_ID)
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
