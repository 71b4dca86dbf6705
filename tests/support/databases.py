"""Reuse of migrated databases: a test gives its database back, and the next test gets it empty and unchanged.

Making a copy of the template costs PostgreSQL 0.15 s of CPU and a checkpoint; emptying one costs 3 ms. A database
whose schema, grants, settings or first rows differ from the template's is not used again.
"""

from dataclasses import dataclass
from typing import cast

from gateway.store.database.connection import PostgresConnection, connect_owner
from tests.support.kept_connections import KEPT, is_alive

_OTHERS = f"""
select pg_terminate_backend(pid, 5000) from pg_stat_activity
where datname = $1 and pid <> pg_backend_pid() and (application_name, state) is distinct from ('{KEPT}', 'idle')
"""
_TABLES = "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by relname"
_SCHEMA_BY = """
select md5(string_agg(part, ' ' order by part)) from (
    select 'c' || oid || '.' || {relation} from pg_class where oid >= 16384 and relpersistence <> 't'
    union all select 'a' || attrelid || '.' || attnum || '.' || xmin from pg_attribute
        where attrelid in (select oid from pg_class where oid >= 16384 and relpersistence <> 't')
    union all select 'f' || oid || '.' || xmin from pg_proc where oid >= 16384
    union all select 't' || oid || '.' || xmin from pg_trigger
    union all select 'p' || oid || '.' || xmin from pg_policy
    union all select 'k' || oid || '.' || xmin from pg_constraint where oid >= 16384
    union all select 'n' || oid || '.' || xmin from pg_namespace where nspname !~ '^pg_(toast_)?temp_'
    union all select 'r' || oid || '.' || xmin from pg_default_acl
    union all select 's' || setrole || array_to_string(setconfig, ',') from pg_db_role_setting
        where setdatabase = (select oid from pg_database where datname = current_database())
    union all select 'd' || datconnlimit || coalesce(datacl::text, '') from pg_database
        where datname = current_database()
    union all select 'e' || oid || '.' || xmin from pg_extension
) as parts (part)
"""
_SCHEMA = _SCHEMA_BY.format(relation="xmin")
"""A row of the catalog that was changed has another `xmin`, even if it was changed back."""
_SCHEMA_OF_SAVED = _SCHEMA_BY.format(
    relation="concat_ws('.', relname, relowner, relacl, relrowsecurity, relforcerowsecurity, relhastriggers)"
)
"""The same, but tables may have been truncated, which writes their rows of the catalog."""
_CHANGED = "a test changed schema, grants, settings or first rows of a shared database: give it one of its own"
_MANY = 1_000
"""Deleted rows of a table from which on their space is given back, so that later tests do not read it."""
_DELETE = "with {deletions} select name from ({counts}) as deleted (name, rows) where rows > " + str(_MANY)
"""Deletes the rows of all tables in one statement, and names the tables that had many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pristine:
    """The state in which every test gets its database: schema with the settings of the database, and rows by table."""

    schema: str
    rows: dict[str, str]


async def read_pristine(url: str) -> Pristine:
    """The state of a database that was just migrated; `url` is the superuser's."""
    connection = await connect_owner(url)
    try:
        rows = {table: await _rows_of(connection, table) for table in await _tables_of(connection)}
        return Pristine(schema=await _schema_of(connection), rows=rows)
    finally:
        await connection.close()


class ReusedDatabase:
    """A database that tests borrow one after the other.

    It keeps the connection over which it is emptied: a new one costs PostgreSQL more than the work itself, because each
    reads the catalog and plans the deletions again.
    """

    def __init__(self, name: str, url: str, pristine: Pristine) -> None:
        self.name = name
        self._url = url
        self._pristine = pristine
        empty = [table for table, rows in pristine.rows.items() if not rows]
        self._delete = _DELETE.format(
            deletions=", ".join(f"d_{table} as (delete from {table} returning 1)" for table in empty),
            counts=" union all ".join(f"select '{table}' as name, count(*) from d_{table}" for table in empty),
        )
        self._tables = empty
        self._insert = ""
        self._saved_schema: object = None
        self._connection: PostgresConnection | None = None

    async def clean(self) -> bool:
        """End the connections of others and delete what was added; False if the database must not be used again."""
        connection = await self._connected()
        await connection.fetch(_OTHERS, self.name)
        return await self._emptied(connection)

    async def empty(self) -> None:
        """Delete what was added beneath open connections; an error if the database must not be used again."""
        assert await self._emptied(await self._connected()), _CHANGED

    async def save(self) -> None:
        """Keep the rows of this moment in a schema of their own, which ends the reuse after this loan."""
        connection = await self._connected()
        await connection.execute("create schema saved_rows")
        inserts: list[str] = []
        for table in self._tables:
            if await connection.fetchval(f"select exists (select from {table})"):
                await connection.execute(f"create table saved_rows.{table} as table {table}")
                inserts.append(f"i_{table} as (insert into {table} select * from saved_rows.{table})")
        self._insert = f"with {', '.join(inserts)} select 1"
        self._saved_schema = await connection.fetchval(_SCHEMA_OF_SAVED)

    async def restore(self) -> None:
        """Replace all rows with the saved ones; an error if the test before changed the schema, grants or settings."""
        connection = await self._connected()
        assert await connection.fetchval(_SCHEMA_OF_SAVED) == self._saved_schema, _CHANGED
        await self._delete_rows(connection)
        await connection.fetch(self._insert)

    async def disconnect(self) -> None:
        """Close the connection, for what needs a database without any."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _emptied(self, connection: PostgresConnection) -> bool:
        if await _schema_of(connection) != self._pristine.schema:
            return False
        await self._delete_rows(connection)
        return all([await _rows_of(connection, name) == rows for name, rows in self._pristine.rows.items() if rows])

    async def _delete_rows(self, connection: PostgresConnection) -> None:
        for row in await connection.fetch(self._delete):
            await connection.execute(f"vacuum {row['name']}")

    async def _connected(self) -> PostgresConnection:
        """The connection, or a new one if a test has ended it, on which neither triggers nor foreign keys count."""
        if self._connection is not None and await is_alive(self._connection):
            return self._connection
        self._connection = await connect_owner(self._url)
        await self._connection.execute("set session_replication_role = replica; set lock_timeout = '20s'")
        return self._connection


async def _tables_of(connection: PostgresConnection) -> list[str]:
    return [cast("str", row["relname"]) for row in await connection.fetch(_TABLES)]


async def _rows_of(connection: PostgresConnection, table: str) -> str:
    found = await connection.fetchval(f"select string_agg(r::text, ' ' order by r::text) from {table} as r")
    return str(found or "")


async def _schema_of(connection: PostgresConnection) -> str:
    return str(await connection.fetchval(_SCHEMA))
