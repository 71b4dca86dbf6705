"""Clients of the authorization server, the consents of people, and the grants under which tokens are issued.

Only adds: code of earlier revisions works on this schema, but refuses the access tokens that this one issues.
"""

from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

TABLES = """
create table oauth_clients (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    kind text not null,
    name text not null,
    redirect_uris text[] not null,
    secret bytea,
    created_at timestamptz not null,
    used_at timestamptz,
    version bigint not null,
    primary key (tenant_id, id)
);
create table consents (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    person_id text collate "C" not null,
    subject text not null,
    client text collate "C" not null,
    client_name text not null,
    redirect_host text collate "C" not null,
    resource text collate "C" not null,
    scopes text[] not null,
    created_at timestamptz not null,
    version bigint not null,
    primary key (tenant_id, id),
    constraint consents_of_person unique (tenant_id, person_id, client, redirect_host, resource),
    constraint consents_person foreign key (tenant_id, person_id) references keys (tenant_id, id) on delete cascade
);
create table grants (
    tenant_id text collate "C" not null references tenants (id) on delete cascade,
    id text collate "C" not null,
    person_id text collate "C" not null,
    subject text not null,
    sign_in_id text collate "C" not null,
    client text collate "C" not null,
    client_name text not null,
    redirect_uri text not null,
    resource text collate "C" not null,
    profile text collate "C" not null,
    scopes text[] not null,
    code bytea not null,
    code_challenge text not null,
    code_ends_at timestamptz not null,
    code_used_at timestamptz,
    family bytea,
    refresh bytea,
    former_refresh bytea,
    rotated_at timestamptz,
    created_at timestamptz not null,
    used_at timestamptz,
    idle_ends_at timestamptz not null,
    ends_at timestamptz not null,
    revoked_at timestamptz,
    revoked_for text,
    version bigint not null,
    primary key (tenant_id, id),
    constraint grants_id unique (id),
    constraint grants_person foreign key (tenant_id, person_id) references keys (tenant_id, id) on delete cascade,
    constraint grants_sign_in foreign key (tenant_id, sign_in_id) references sign_ins (tenant_id, id) on delete cascade
);
create index grants_of_person on grants (tenant_id, person_id, created_at);
create index grants_of_sign_in on grants (tenant_id, sign_in_id);
create index grants_of_client on grants (tenant_id, client);
create index grants_ended on grants (tenant_id, idle_ends_at)
"""

# A grant is valid as long as its person: the rest of the row is the person's.
GRANT_BY_ID = """
create function grant_by_id(wanted text)
returns table (
    tenant_id text, id text, name text, scopes text[], subject text, profile text, digest bytea,
    created_at timestamptz, expires_at timestamptz, revoked_at timestamptz, version bigint, issuer_id text,
    secret_number integer, pepper text, former_digest bytea, former_pepper text, former_number integer,
    former_ends_at timestamptz, last_used_at timestamptz, slug text
)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select k.tenant_id, g.id, k.name, k.scopes, k.subject, k.profile, k.digest, k.created_at, k.expires_at,
           least(k.revoked_at, g.revoked_at), k.version, k.issuer_id, k.secret_number, k.pepper, k.former_digest,
           k.former_pepper, k.former_number, k.former_ends_at, k.last_used_at, k.slug
    from public.grants g, public.key_by_id(g.person_id) k
    where g.id = wanted and k.tenant_id = g.tenant_id
$$
"""


def upgrade() -> None:
    for statement in TABLES.split(";"):
        run(statement)
    # Replicas of the older release store none, and access rules take the stricter sense.
    run("alter table sign_ins add column has_all_groups boolean not null default false")
    own = "tenant_id = nullif(current_setting('app.tenant', true), '')"
    for table in ("oauth_clients", "consents", "grants"):
        run(f"alter table {table} enable row level security")
        run(f"alter table {table} force row level security")
        run(f"create policy own_rows on {table} using ({own}) with check ({own})")
        run(f"grant select, insert, update, delete on {table} to gateway_app")
    run("create policy seen_by_definer on grants for select to gateway_definer using (true)")
    run("grant select on grants to gateway_definer")
    open_door("grant_by_id(text)", GRANT_BY_ID)


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
