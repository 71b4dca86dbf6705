"""Names in tenants' catalogs that hide Python primitives, looked up at start and after each registration.

The result is written to the log, to each affected tenant's audit trail and to `Registrations.hidden`. While the gateway
serves, each registration first checks its own name and returns the result to the caller.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Self

import anyio
import structlog

from gateway.app.python.limits import LOOKUP_RETRY_S, LOOKUP_S
from gateway.app.python.registrations import Lookup, Registrations
from gateway.catalog.snapshots.hidden_primitives import find_hidden, record_hidden
from gateway.catalog.snapshots.python_primitives import PythonPrimitive
from gateway.catalog.transaction import CatalogContext
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.primitives import OwnedName
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.errors import DatabaseUnavailable, Unavailable
from gateway.store.engine import Store

log = structlog.get_logger(__name__)


class HiddenNames:
    """Looks up hidden names at the start and after each registration. It needs an open store and an open bus."""

    def __init__(self, catalog: CatalogContext, code: Registrations, *, database_url: str | ConfiguredSecret) -> None:
        self._catalog = catalog
        self._code = code
        self._look_up = blocking_lookup(database_url)
        self._changed = asyncio.Event()
        self._tasks = TaskSupervisor()
        self._stack = AsyncExitStack()

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again."""
        return self._tasks.failing

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            loop = asyncio.get_running_loop()
            stack.callback(self._code.consult(self._look_up))
            stack.callback(self._code.subscribe(lambda: loop.call_soon_threadsafe(self._changed.set)))
            await self._find()
            await stack.enter_async_context(self._tasks)
            self._tasks.spawn_loop(self._follow)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _find(self) -> None:
        self._code.hidden = await find_hidden(self._catalog.store, self._code.primitives())

    async def _follow(self) -> None:
        while True:
            try:
                await self._record()
                await self._changed.wait()
                self._changed.clear()
                await self._find()
            except Unavailable as error:
                self._changed.set()
                log.warning("hidden_names_unknown", reason=error.message)
                await anyio.sleep(LOOKUP_RETRY_S)

    async def _record(self) -> None:
        for hidden in self._code.hidden:
            if await record_hidden(self._catalog, hidden):
                log.warning("code_primitive_hidden", tenant_id=hidden.tenant, family=hidden.family, name=hidden.name)


def blocking_lookup(database_url: str | ConfiguredSecret) -> Lookup:
    """Return a lookup that any thread can call. It runs in a thread with its own connection, and blocks its caller."""

    async def find(primitive: PythonPrimitive) -> Sequence[OwnedName]:
        try:
            async with asyncio.timeout(LOOKUP_S), Store(database_url, pool_size=1) as store:
                return await find_hidden(store, [primitive])
        except TimeoutError:
            raise DatabaseUnavailable(
                "the database is unavailable, so tenants' names cannot be checked; register it again later"
            ) from None

    def look_up(primitive: PythonPrimitive) -> Sequence[OwnedName]:
        with ThreadPoolExecutor(1, thread_name_prefix="names") as pool:
            return pool.submit(asyncio.run, find(primitive)).result()

    return look_up
