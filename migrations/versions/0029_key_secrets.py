"""Two secrets of one key during a rotation, the secret key behind each digest, and the hour of a key's last use.

Only adds: code of earlier revisions accepts the newest secret only. When it replaces a digest, the trigger ends the
former secret and forgets the names of the secret keys.
"""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

COLUMNS = """
alter table keys add column secret_number integer not null default 1;
alter table keys add column pepper text collate "C";
alter table keys add column former_digest bytea;
alter table keys add column former_pepper text collate "C";
alter table keys add column former_number integer;
alter table keys add column former_ends_at timestamptz;
alter table keys add column last_used_at timestamptz
"""

# This release changes the number or the name with the digest; an earlier release changes the digest alone.
REPLACED = """
create function key_secret_replaced() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if new.secret_number = old.secret_number and new.pepper is not distinct from old.pepper then
        new.secret_number := old.secret_number + 1;
        new.pepper := null;
        new.former_digest := null;
        new.former_pepper := null;
        new.former_number := null;
        new.former_ends_at := null;
    end if;
    return new;
end
$$
"""

TRIGGER = """
create trigger key_secret_replaced before update of digest on keys
for each row when (new.digest is distinct from old.digest and new.issuer_id is null)
execute function key_secret_replaced()
"""

KEY_BY_ID = """
create function key_by_id(wanted text)
returns table (
    tenant_id text, id text, name text, scopes text[], subject text, profile text, digest bytea,
    created_at timestamptz, expires_at timestamptz, revoked_at timestamptz, version bigint, issuer_id text,
    secret_number integer, pepper text, former_digest bytea, former_pepper text, former_number integer,
    former_ends_at timestamptz, last_used_at timestamptz, slug text
)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select k.tenant_id, k.id, k.name, k.scopes, k.subject, k.profile, k.digest, k.created_at, k.expires_at,
           least(k.revoked_at, (
               select min(p.revoked_at) from public.keys p
               where p.tenant_id = k.tenant_id and p.subject = k.subject and p.issuer_id is not null
           )),
           k.version, k.issuer_id, k.secret_number, k.pepper, k.former_digest, k.former_pepper, k.former_number,
           k.former_ends_at, k.last_used_at, t.slug
    from public.keys k join public.tenants t on t.id = k.tenant_id
    where k.id = wanted
$$
"""


def upgrade() -> None:
    for statement in COLUMNS.split(";"):
        run(statement)
    run(REPLACED)
    run("revoke all on function key_secret_replaced() from public")
    run(TRIGGER)
    run("drop function key_by_id(text)")
    open_door("key_by_id(text)", KEY_BY_ID)


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
