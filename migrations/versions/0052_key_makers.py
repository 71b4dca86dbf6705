"""The makers of each secret of a key: the author of its creation or rotation, and the people behind an author's key.

Only adds: a key that an earlier release creates has no maker, and one that it rotates keeps the maker that it had.
"""

from alembic import op

revision = "0052"
down_revision = "0050"
branch_labels = None
depends_on = None

COLUMNS = """
alter table keys
    add column made_by text[] collate "C" not null default '{}',
    add column former_made_by text[] collate "C" not null default '{}'
"""

KEY_BY_ID = """
create function key_by_id(wanted text)
returns table (
    tenant_id text, id text, name text, scopes text[], subject text, profile text, digest bytea,
    created_at timestamptz, expires_at timestamptz, revoked_at timestamptz, version bigint, issuer_id text,
    secret_number integer, pepper text, former_digest bytea, former_pepper text, former_number integer,
    former_ends_at timestamptz, last_used_at timestamptz, made_by text[], former_made_by text[], slug text
)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select k.tenant_id, k.id, k.name, k.scopes, k.subject, k.profile, k.digest, k.created_at, k.expires_at,
           least(k.revoked_at, (
               select min(p.revoked_at) from public.keys p
               where p.tenant_id = k.tenant_id and p.subject = k.subject and p.issuer_id is not null
           )),
           k.version, k.issuer_id, k.secret_number, k.pepper, k.former_digest, k.former_pepper, k.former_number,
           k.former_ends_at, k.last_used_at, k.made_by, k.former_made_by, t.slug
    from public.keys k join public.tenants t on t.id = k.tenant_id
    where k.id = wanted
$$
"""

# As in revision 0036: a grant has the columns of its person.
GRANT_BY_ID = """
create function grant_by_id(wanted text)
returns table (
    tenant_id text, id text, name text, scopes text[], subject text, profile text, digest bytea,
    created_at timestamptz, expires_at timestamptz, revoked_at timestamptz, version bigint, issuer_id text,
    secret_number integer, pepper text, former_digest bytea, former_pepper text, former_number integer,
    former_ends_at timestamptz, last_used_at timestamptz, made_by text[], former_made_by text[], slug text
)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select k.tenant_id, g.id, k.name, k.scopes, k.subject, k.profile, k.digest, k.created_at, k.expires_at,
           least(k.revoked_at, g.revoked_at), k.version, k.issuer_id, k.secret_number, k.pepper, k.former_digest,
           k.former_pepper, k.former_number, k.former_ends_at, k.last_used_at, k.made_by, k.former_made_by, k.slug
    from public.grants g, public.key_by_id(g.person_id) k
    where g.id = wanted and k.tenant_id = g.tenant_id
$$
"""


def upgrade() -> None:
    run(COLUMNS)
    for name, definition in (("key_by_id(text)", KEY_BY_ID), ("grant_by_id(text)", GRANT_BY_ID)):
        run(f"drop function {name}")
        open_door(name, definition)


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
