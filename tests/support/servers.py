"""Real PostgreSQL and Redis for tests: one pair per test process, an empty database and an empty Redis per test."""

import itertools
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

import redis
from anyio.from_thread import start_blocking_portal

from gateway.embedded.servers import EmbeddedServers, EmbeddedUrls
from gateway.store.database.connection import connect_owner
from gateway.store.database.migrations import migrate
from tests.support.databases import Pristine, ReusedDatabase, read_pristine
from tests.support.kept_connections import execute, forget, run_apart

__all__ = ["execute"]  # of `tests/support/kept_connections.py`

TEMPLATE = "gateway_template"
_CHEAP = ("fsync = off", "max_wal_size = '96MB'", "min_wal_size = '32MB'")
"""Data of tests need not survive a power cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestDatabase:
    """One migrated database: as the gateway sees it, as its owner does, and as PostgreSQL's superuser does."""

    __test__ = False

    app_url: str
    owner_url: str
    superuser_url: str


class TestServers:
    """The servers of one test process."""

    __test__ = False

    def __init__(self, urls: EmbeddedUrls) -> None:
        self.urls = urls
        self._numbers = itertools.count(1)
        self._own_redis = itertools.cycle(range(1, 16))
        self._held_redis = set[int]()
        self._pristine: Pristine | None = None
        self._free: list[ReusedDatabase] = []
        self._lent: dict[str, ReusedDatabase] = {}

    @property
    def superuser_url(self) -> str:
        """The superuser's door to the database `postgres`."""
        return _at(self.urls.migration_database_url, user="postgres", database="postgres")

    @contextmanager
    def database(self) -> Generator[TestDatabase]:
        """A migrated database without tenants that no other test uses."""
        pristine = self._make_template()
        lent = self._free.pop() if self._free else self._new_database(pristine)
        self._lent[lent.name] = lent
        is_clean = False
        try:
            yield self._named(lent.name)
            is_clean = run_apart(lent.clean())
        finally:
            del self._lent[lent.name]
            if is_clean:
                self._free.append(lent)
            else:
                run_apart(lent.disconnect())
                self._drop(lent.name)

    def empty(self, database: TestDatabase) -> None:
        """Delete the rows of a test; connections stay, and an error reports that the test changed more than rows."""
        run_apart(self._lent_at(database).empty())

    def save_rows(self, database: TestDatabase) -> None:
        """Keep the rows that the database has now, for `restore_rows`."""
        run_apart(self._lent_at(database).save())

    def restore_rows(self, database: TestDatabase) -> None:
        """Give the database the rows that were kept, and no others."""
        run_apart(self._lent_at(database).restore())

    @contextmanager
    def empty_database(self) -> Generator[TestDatabase]:
        """A database without migrations, dropped afterwards."""
        with self._created(self._new_name(), "template1") as name:
            yield self._named(name)

    def empty_redis(self) -> str:
        """Redis without any key, and where it is."""
        return self._flushed(0)

    def copied_redis(self, source: str) -> str:
        """Redis with the keys of the one at this URL alone, which is another one."""
        number = int(source.rpartition("=")[2])
        url = self.empty_redis()
        with redis.Redis(unix_socket_path=urlsplit(url).path, db=number, driver_info=None) as client:
            command = cast(Callable[..., Any], cast(Any, client).execute_command)
            for key in command("KEYS", "*"):
                command("COPY", key, key, "DB", 0)
        return url

    def own_redis(self) -> str:
        """The same, and it is emptied only by the fifteenth request after it."""
        number = next(number for number in self._own_redis if number not in self._held_redis)
        return f"{self._flushed(number)}?db={number}"

    @contextmanager
    def held_redis(self) -> Generator[str]:
        """The same, and it is not emptied while the block runs."""
        url = self.own_redis()
        number = int(url.rpartition("=")[2])
        self._held_redis.add(number)
        try:
            yield url
        finally:
            self._held_redis.remove(number)

    def _flushed(self, number: int) -> str:
        path = urlsplit(self.urls.redis_url).path
        with redis.Redis(unix_socket_path=path, db=number, driver_info=None) as client:
            client.execute_command("FLUSHDB")  # pyright: ignore[reportUnknownMemberType]  # partly typed
        return self.urls.redis_url

    @contextmanager
    def _created(self, name: str, template: str) -> Generator[str]:
        self._create(name, template)
        try:
            yield name
        finally:
            self._drop(name)

    def close(self) -> None:
        """Close the connections to the databases that no test has now."""
        run_apart(forget(self.superuser_url))
        while self._free:
            freed = self._free.pop()
            run_apart(freed.disconnect())
            run_apart(forget(self._named(freed.name).superuser_url))

    def _new_database(self, pristine: Pristine) -> ReusedDatabase:
        name = self._create(self._new_name(), TEMPLATE)
        return ReusedDatabase(name, _at(self.superuser_url, database=name), pristine)

    def _lent_at(self, database: TestDatabase) -> ReusedDatabase:
        return self._lent[urlsplit(database.owner_url).path[1:]]

    def _new_name(self) -> str:
        return f"test_{next(self._numbers)}"

    def _create(self, name: str, template: str) -> str:
        self._run(f"create database {name} template {template} owner gateway_owner")
        return name

    def _drop(self, name: str) -> None:
        run_apart(forget(self._named(name).superuser_url))
        self._run(f"drop database if exists {name} with (force)")

    def _named(self, name: str) -> TestDatabase:
        return TestDatabase(
            app_url=_at(self.urls.database_url, database=name),
            owner_url=_at(self.urls.migration_database_url, database=name),
            superuser_url=_at(self.superuser_url, database=name),
        )

    def _make_template(self) -> Pristine:
        """Migrated once per process and copied from then on."""
        if self._pristine is None:
            for statement in (*(f"alter system set {setting}" for setting in _CHEAP), "select pg_reload_conf()"):
                self._run(statement)
            self._create(TEMPLATE, "template1")
            run_apart(migrate(_at(self.urls.migration_database_url, database=TEMPLATE)))
            self._pristine = run_apart(read_pristine(_at(self.superuser_url, database=TEMPLATE)))
        return self._pristine

    def _run(self, statement: str) -> None:
        run_apart(execute(self.superuser_url, statement))


@contextmanager
def running_servers() -> Generator[TestServers]:
    """Both servers in a short temporary folder, on an event loop of their own."""
    folder = Path(tempfile.mkdtemp(prefix="gwt-"))
    try:
        with (
            start_blocking_portal("asyncio") as portal,
            portal.wrap_async_context_manager(EmbeddedServers(folder)) as urls,
            closing(TestServers(urls)) as servers,
        ):
            yield servers
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def fetch_value(url: str, query: str, *values: object) -> object:
    """The value that a query finds; None without a row."""
    connection = await connect_owner(url)
    try:
        return await connection.fetchval(query, *values)
    finally:
        await connection.close()


async def dump(url: str) -> str:
    """All rows of all tables as text, and each value of bytes also as the text that it may hold."""
    connection = await connect_owner(url)
    try:
        tables = await connection.fetch(
            "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
        )
        rows = [row for table in tables for row in await connection.fetch(f'select * from "{table["relname"]}"')]
    finally:
        await connection.close()
    values = [value for row in rows for value in row.values()]
    return "\n".join(value.decode("latin-1") if isinstance(value, bytes) else str(value) for value in values)


def _at(url: str, *, database: str, user: str | None = None) -> str:
    parts = urlsplit(url)
    netloc = parts.netloc if user is None else f"{user}@"
    return urlunsplit(parts._replace(netloc=netloc, path=f"/{database}"))
