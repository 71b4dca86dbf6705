"""Signs where the chains of the trail stand: once a minute, for tenants of which something was written, and at the end.

It takes no part in a call. A replica that ends without a word leaves at most a minute unsigned, until the next replica
that writes for the tenant signs it.
"""

import secrets
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import anyio
import structlog
from anyio.abc import TaskGroup

from gateway.domain.identifiers import TenantId
from gateway.errors import GatewayError
from gateway.store import audit_heads
from gateway.store.audit_chain import CATALOG, START
from gateway.store.audit_heads import End, HeadRow, Signature, seal
from gateway.store.audit_moved import Moved
from gateway.store.engine import Store

log = structlog.get_logger(__name__)

PAUSE_S = 60.0
_CLOSE_S = 3.0
_AT_ONCE = 1000
_MOST_TENANTS = 10_000


class AuditSigner:
    """The signer of one replica; open it with `async with`, once, while the store is open."""

    def __init__(self, store: Store, moved: Moved, *, key: bytes, pause_s: float = PAUSE_S) -> None:
        self._store = store
        self._moved = moved
        self._key = key
        self._pause_s = pause_s
        self._tasks: TaskGroup | None = None
        self._begin_anew()

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._run)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What was written last is signed, too, if that takes no more than a few seconds."""
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            tasks.cancel_scope.cancel()
            await tasks.__aexit__(None, None, None)
        with anyio.move_on_after(_CLOSE_S, shield=True):
            await self._try_to_sign()

    async def sign(self) -> None:
        """Sign where the chains of the tenants stand of which something was written.

        Raises:
            DatabaseUnavailable: PostgreSQL does not answer; what was not signed is left for the next time.
        """
        taken = self._moved.take(_AT_ONCE)
        try:
            while taken:
                tenant = next(iter(taken))
                await self._sign(tenant, taken[tenant])
                del taken[tenant]
        except BaseException:
            # Nobody knows whether the last ones are stored: others must not be given their numbers.
            self._begin_anew()
            for tenant, writers in taken.items():
                for writer in writers:
                    self._moved.note(tenant, writer)
            raise

    async def _run(self) -> None:
        while True:
            await anyio.sleep(self._pause_s)
            await self._try_to_sign()

    async def _try_to_sign(self) -> None:
        try:
            await self.sign()
        except GatewayError as error:
            log.warning("audit_not_signed", reason=error.message)
        except Exception:
            log.exception("audit_not_signed")

    async def _sign(self, tenant: TenantId, writers: set[str]) -> None:
        """Everything where this signer sees the tenant for the first time, later what was written here and changes."""
        if len(self._ends) >= _MOST_TENANTS:
            self._begin_anew()
        async with self._store.upkeep(tenant) as db:
            if tenant in self._ends:
                found = await audit_heads.unsigned_of(tenant, db, {*writers, CATALOG})
            else:
                found = await audit_heads.unsigned(tenant, db, signer=self._name)
            made = self._signatures(tenant, found)
            if made:
                await audit_heads.append(tenant, db, made)
        last = (made[-1].row.number, made[-1].mac) if made else self._ends.get(tenant, (0, START))
        self._ends[tenant] = last

    def _signatures(self, tenant: TenantId, ends: Sequence[End]) -> Sequence[Signature]:
        number, previous = self._ends.get(tenant, (0, START))
        made: list[Signature] = []
        for end in ends:
            number += 1
            row = HeadRow(tenant, self._name, number, *end)
            previous = seal(self._key, previous, row)
            made.append(Signature(row, previous))
        return made

    def _begin_anew(self) -> None:
        """A new chain of signatures for every tenant; where the one before ended is signed with the rest."""
        self._name = secrets.token_hex(8)
        self._ends: dict[TenantId, tuple[int, bytes]] = {}
