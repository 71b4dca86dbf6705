"""Diagnostics of a database: version, clock, migration, and the settings that isolate tenants.

They are read under the login itself. `connect_app` would refuse an unsafe role, but the diagnosis has to describe that
role.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.errors import DatabaseUnavailable
from gateway.store import tables
from gateway.store.audit import tables as audit_tables
from gateway.store.calls import tables as call_tables
from gateway.store.database.connection import APP_ROLE, PostgresConnection, connect_owner
from gateway.store.identity import tables as identity_tables
from gateway.store.notifications import tables as notification_tables

_MODULES = (tables, audit_tables, call_tables, identity_tables, notification_tables)
_TABLES = sorted({name for module in _MODULES for name in module.metadata.tables})
_APPEND_ONLY = ("audit_cuts", "audit_entries", "audit_heads")

_SERVER = """
select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
       session_user::text as login, extract(epoch from clock_timestamp())::float8 as now,
       (select rolsuper or rolbypassrls from pg_catalog.pg_roles where rolname = session_user) as bypasses_isolation,
       pg_is_in_recovery() as is_standby, current_setting('transaction_read_only')::bool as is_read_only
"""
_ROLE = """
select rolsuper as is_superuser, rolbypassrls as bypasses,
       rolcreaterole or rolcreatedb or rolreplication as may_create_roles_or_databases,
       array(select m.rolname::text from pg_catalog.pg_auth_members a join pg_catalog.pg_roles m on m.oid = a.roleid
             where a.member = r.oid order by 1) as member_of,
       array(select c.relname::text from pg_catalog.pg_class c where c.relowner = r.oid order by 1) as owns
from pg_catalog.pg_roles r where r.rolname = $1
"""
_ROW_LEVEL_SECURITY = """
select c.relname::text as name, c.relrowsecurity as is_enabled, c.relforcerowsecurity as is_forced,
       exists (select from pg_catalog.pg_policy p where p.polrelid = c.oid) as has_policy
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'public' and c.relkind in ('r', 'p') and (c.relname = any($1::text[]) or exists (
    select from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped))
order by 1
"""
_GRANTS = """
select c.relname::text || ': ' || lower(right_) as what, wanted.needed
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
cross join unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) right_
cross join lateral (select right_ in ('SELECT', 'INSERT') as needed,
    right_ in ('TRUNCATE', 'REFERENCES', 'TRIGGER')
    or (right_ in ('UPDATE', 'DELETE') and c.relname = any($2::text[])) as forbidden) wanted
where n.nspname = 'public' and c.relname = any($1::text[])
  and ((wanted.needed and not has_table_privilege($3, c.oid, right_))
       or (wanted.forbidden and has_table_privilege($3, c.oid, right_)))
order by 1
"""
_OPEN_DEFINER_FUNCTIONS = """
select p.proname::text as name from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where n.nspname = 'public' and p.prosecdef and has_function_privilege('public', p.oid, 'execute') order by 1
"""
_MAY_CREATE = "select has_schema_privilege($1, 'public', 'create')"
_HAS_REVISION = "select to_regclass('public.alembic_version') is not null"
_REVISION = "select max(version_num) from public.alembic_version"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleFacts:
    """Attributes and privileges of the role `gateway_app`; in a sound database, all lists are empty."""

    is_superuser: bool
    bypasses: bool
    may_create_roles_or_databases: bool
    member_of: Sequence[str]
    owns: Sequence[str]
    lacks: Sequence[str]
    excess: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFacts:
    """The current facts of one database; `role` is None if the role `gateway_app` does not exist."""

    version: str
    major: int
    login: str
    login_bypasses_isolation: bool
    is_standby: bool
    is_read_only: bool
    """True also for a standby."""
    clock_skew_s: float
    revision: str | None
    role: RoleFacts | None
    tables_without_rls: Sequence[str]
    """Tables of tenants whose row-level security is off or has no policy."""
    tables_not_forcing_rls: Sequence[str]
    """Tables of tenants whose row-level security does not bind their owner."""
    missing: Sequence[str]
    """Tables that this code uses and the database lacks."""


async def examine_database(url: str | ConfiguredSecret) -> DatabaseFacts:
    """Read the facts on a new connection.

    Raises:
        DatabaseUnavailable: PostgreSQL is not reachable or refuses the login, or a query failed.
        BrokenSetting: the URL cannot be read.
    """
    connection = await connect_owner(url)
    try:
        return await _read(connection)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        raise DatabaseUnavailable(f"PostgreSQL disconnected during the check: {type(error).__name__}.") from None
    finally:
        connection.terminate()


async def _read(connection: PostgresConnection) -> DatabaseFacts:
    sent_at = time.time()
    [server] = await connection.fetch(_SERVER)
    answered_at = time.time()
    tables = await connection.fetch(_ROW_LEVEL_SECURITY, _TABLES)
    return DatabaseFacts(
        version=str(server["version"]).split(" ", 1)[0],
        major=_int(server["number"]) // 10_000,
        login=str(server["login"]),
        login_bypasses_isolation=bool(server["bypasses_isolation"]),
        is_standby=bool(server["is_standby"]),
        is_read_only=bool(server["is_read_only"]),
        clock_skew_s=_float(server["now"]) - (sent_at + answered_at) / 2,
        revision=await _revision(connection),
        role=await _role(connection),
        tables_without_rls=[
            str(table["name"]) for table in tables if not (table["is_enabled"] and table["has_policy"])
        ],
        tables_not_forcing_rls=[str(table["name"]) for table in tables if not table["is_forced"]],
        missing=sorted({*_TABLES}.difference(str(table["name"]) for table in tables)),
    )


async def _role(connection: PostgresConnection) -> RoleFacts | None:
    found = await connection.fetch(_ROLE, APP_ROLE)
    if not found:
        return None
    [role] = found
    grants = await connection.fetch(_GRANTS, _TABLES, list(_APPEND_ONLY), APP_ROLE)
    excess = [str(grant["what"]) for grant in grants if not grant["needed"]]
    if await connection.fetchval(_MAY_CREATE, APP_ROLE):
        excess.append("schema public: create")
    functions = await connection.fetch(_OPEN_DEFINER_FUNCTIONS)
    excess += [f"{function['name']}: execute by everybody" for function in functions]
    return RoleFacts(
        is_superuser=bool(role["is_superuser"]),
        bypasses=bool(role["bypasses"]),
        may_create_roles_or_databases=bool(role["may_create_roles_or_databases"]),
        member_of=_texts(role["member_of"]),
        owns=_texts(role["owns"]),
        lacks=[str(grant["what"]) for grant in grants if grant["needed"]],
        excess=excess,
    )


async def _revision(connection: PostgresConnection) -> str | None:
    if not await connection.fetchval(_HAS_REVISION):
        return None
    found = await connection.fetchval(_REVISION)
    return found if isinstance(found, str) else None


def _texts(value: object) -> Sequence[str]:
    return [str(item) for item in value] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # the driver has no types


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _float(value: object) -> float:
    return value if isinstance(value, float) else 0.0
