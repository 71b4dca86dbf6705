"""Re-encryption of all stored secrets under the current secret key, while the gateway serves.

One replica at a time runs it under a lease, tenant by tenant, in batches of one transaction each. If the lease expires,
another replica continues with the next tenant. A tenant gets a new data key; every sealed value is re-encrypted under
it, and the data keys under older secret keys are deleted. The digest of an API key needs the key's text, so it is
replaced when the key is used. Finally, the keys that verify older entries of the audit trails are sealed under the
current secret key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, Self

import anyio
import structlog

from gateway.catalog.identity.limits import ROTATION_PAUSE_S, ROTATION_POLL_S
from gateway.catalog.identity.secret_keys.start_check import RETAINED, describe
from gateway.catalog.identity.secret_keys.status import REPORTED_FOR, read_state
from gateway.catalog.tenants import get_tenant
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import INSTALLATION
from gateway.domain.tenancy.principals import Operator
from gateway.domain.tenancy.secret_keys import RotationState, SecretKeysState
from gateway.domain.tenancy.tenants import Tenant
from gateway.errors import Conflict, GatewayError, NotFound, SecretUnreadable
from gateway.store import idempotency, secrets, tenants
from gateway.store.audit import export_keys
from gateway.store.engine import Db
from gateway.store.secret_keys import registry, rotation_state
from gateway.store.secret_keys.sealed_values import SEALED_TABLES, reseal_batch
from gateway.store.secrets import TenantKey

log = structlog.get_logger(__name__)

ACTION = "secrets.rotate"
"""The action of the audit entry of each tenant whose values were re-encrypted."""

_LEASE = timedelta(seconds=30)
_FORGOTTEN_AFTER = timedelta(hours=1)
_PAGE = 100
_ROUNDS = 20
_RECORDS = 200


class DigestReplacement(Protocol):
    """The digests of API keys, which are replaced when a key is used."""

    replaces_older: bool
    """True once every replica has the current secret key."""


class _LeaseLost(Exception):
    """Another replica has taken over."""


@dataclass(slots=True)
class _Progress:
    tenants_done: int
    values_done: int
    unreadable: int


class SecretRotation:
    """The re-encryption as a component of each replica; open it with `async with`, once, while the store is open."""

    def __init__(
        self, catalog: CatalogContext, *, replica: str, digests: DigestReplacement, poll_s: float = ROTATION_POLL_S
    ) -> None:
        self._catalog = catalog
        self._store, self._cipher = catalog.store, catalog.sealer
        self._replica = replica
        self._digests = digests
        self._poll_s = poll_s
        self._tasks = TaskSupervisor()
        self._wake = anyio.Event()

    @property
    def _current(self) -> str:
        """The name of the secret key that encrypts new values."""
        return self._cipher.names[0]

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again."""
        return self._tasks.failing

    async def __aenter__(self) -> Self:
        await self._report()
        self._tasks.open(self._run)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.close()
        with anyio.move_on_after(1, shield=True):
            try:
                async with self._store.unscoped() as db:
                    await registry.leave(db, self._replica)
            except GatewayError as error:
                log.warning("replica_report_left_behind", reason=error.message)

    async def start(self) -> RotationState:
        """Start the re-encryption, unless it is running under this key; a replica continues it in the background.

        Raises:
            Conflict: a running replica lacks the current secret key, or encrypts with another one.
        """
        await self._report()
        async with self._store.unscoped() as db:
            await registry.lock(db)
            await self._check_replicas(db)
            state = await rotation_state.get(db)
            if state is None or state.finished_at is not None or state.key_name != self._current:
                await rotation_state.start(db, self._current)
                state = await rotation_state.get(db)
        self._wake.set()
        assert state is not None
        return state

    async def read(self) -> SecretKeysState:
        """Read the state of the secret keys."""
        return await read_state(self._store, self._cipher)

    async def run(self) -> bool:
        """Run the remaining re-encryption, unless another replica does; True if it was finished."""
        state = await self._acquire_lease()
        if state is None:
            return False
        progress = _Progress(state.tenants_done, state.values_done, state.unreadable)
        after = state.after_slug
        try:
            while found := await self._page(after):
                for tenant in found:
                    await self._rotate(tenant, progress)
                    after = tenant.slug
                    progress.tenants_done += tenant.id != INSTALLATION
                    await self._advance(progress, after_slug=after)
            return await self._finish()
        except _LeaseLost:
            log.warning("secret_rotation_taken_over", after=after)
            return False

    async def _run(self) -> None:
        while True:
            with anyio.move_on_after(self._poll_s):
                await self._wake.wait()
            self._wake = anyio.Event()
            try:
                await self._report()
                if await self.run():
                    log.info("secret_rotation_finished", key=self._current)
                    await self._report()
            except GatewayError as error:
                log.warning("secret_rotation_interrupted", reason=error.message)

    async def _report(self) -> None:
        """Store which secret keys this replica has, and read whether digests of API keys may be replaced."""
        async with self._store.unscoped() as db:
            await registry.report(db, self._replica, self._cipher.names, kept_for=_FORGOTTEN_AFTER)
            state = await rotation_state.get(db)
        if state is not None and state.key_name not in self._cipher.names:
            log.error("secret_key_lacking", key=state.key_name, remedy="add it to GATEWAY_SECRET_KEYS of this replica")
        self._digests.replaces_older = state is not None and state.key_name == self._current

    async def _check_replicas(self, db: Db) -> None:
        for holder in await registry.running(db, within=REPORTED_FOR):
            if self._current not in holder.names:  # guard: rotation-every-replica
                reason = f"lacks the secret key {self._current}: add it to GATEWAY_SECRET_KEYS"
            elif holder.names[0] != self._current:  # guard: rotation-one-sealer
                reason = f"seals with {holder.names[0]}: put {self._current} first in GATEWAY_SECRET_KEYS"
            else:
                continue
            raise Conflict(f"the replica {holder.replica} {reason}, restart it, and rotate then; nothing was changed")

    async def _acquire_lease(self) -> RotationState | None:
        async with self._store.unscoped() as db:
            return await rotation_state.take(db, self._current, self._replica, lease=_LEASE)

    async def _advance(self, progress: _Progress, **more: Any) -> None:
        values = {
            "tenants_done": progress.tenants_done,
            "values_done": progress.values_done,
            "unreadable": progress.unreadable,
        }
        async with self._store.unscoped() as db:
            if not await rotation_state.advance(db, self._replica, lease=_LEASE, **values, **more):
                raise _LeaseLost

    async def _page(self, after: str) -> list[Tenant]:
        async with self._store.unscoped() as db:
            found = list(await tenants.page(db, after=after or None, limit=_PAGE))
        return found if after else [*await self._installation(), *found]

    async def _installation(self) -> Sequence[Tenant]:
        """The installation, which is in no list of tenants; nothing before its first change."""
        try:
            return [await get_tenant(INSTALLATION, self._catalog)]
        except NotFound:
            return []

    async def _rotate(self, tenant: Tenant, progress: _Progress) -> None:
        """Re-encrypt all values of a tenant; a tenant that is removed concurrently has none."""
        try:
            async with self._store.upkeep(tenant.id) as db:
                await export_keys.keep(tenant.id, db, self._cipher)
                key = await secrets.current_key(tenant.id, db, self._cipher)
            done = await self._rewrap_records(tenant, progress)
            if key is not None:
                done += await self._move_values(tenant, key, progress)
            if done:
                entry = CatalogChange(action=ACTION, target=self._current, detail={"values": done})
                by = Author(caller=Operator(), correlation_id=f"rotation-{self._current}")
                async with change(tenant.id, self._catalog, entry, by=by):
                    pass
        except NotFound:
            log.info("secret_rotation_tenant_gone", tenant_id=tenant.id)

    async def _rewrap_records(self, tenant: Tenant, progress: _Progress) -> int:
        total = 0
        while True:
            async with self._store.upkeep(tenant.id) as db:
                done = await idempotency.rewrap_some(tenant.id, db, self._cipher, limit=_RECORDS)
            total += done
            progress.values_done += done
            if done < _RECORDS:
                return total
            await self._advance(progress)

    async def _move_values(self, tenant: Tenant, key: TenantKey, progress: _Progress) -> int:
        """Re-encrypt all values under a data key, and delete older data keys; locked rows are retried."""
        total, before = 0, progress.unreadable
        for _ in range(_ROUNDS):
            progress.unreadable = before
            total += await self._move_once(tenant, key, progress)
            async with self._store.upkeep(tenant.id) as db:
                used = [sealed.table for sealed in SEALED_TABLES]
                left = await secrets.remove_unused_keys(tenant.id, db, self._cipher, used)
            if not left:
                return total
            await anyio.sleep(ROTATION_PAUSE_S)
        return total

    async def _move_once(self, tenant: Tenant, key: TenantKey, progress: _Progress) -> int:
        total = 0
        for sealed in SEALED_TABLES:
            after: str | None = ""
            while after is not None:
                async with self._store.upkeep(tenant.id) as db:
                    batch = await reseal_batch(tenant.id, db, self._cipher, sealed, to=key, after=after)
                total += batch.changed
                progress.values_done += batch.changed
                progress.unreadable += batch.unreadable
                after = batch.last
                if after is not None:
                    await self._advance(progress)
        return total

    async def _finish(self) -> bool:
        """Finish the re-encryption if no value needs another configured key; otherwise restart with the first
        tenant.
        """
        async with self._store.unscoped() as db:
            await registry.lock(db)
            older = set(self._cipher.names[1:])
            kinds = {"api_keys", "retained_keys"}  # digests are replaced when their keys are used, retained keys below
            left = [need for need in await registry.needs(db) if need.name in older and need.kind not in kinds]
            if left:
                fault = f"still under an older secret key: {describe(left)}; the rotation continues"
                await rotation_state.advance(db, self._replica, lease=timedelta(0), after_slug="", fault=fault)
                return False
            await self._retain(db)
            return await rotation_state.finish(db, self._replica)

    async def _retain(self, db: Db) -> None:
        """Seal the keys that outlast older secret keys under the current secret key."""
        for name, key in (await registry.known(db)).items():
            if name == self._current or key.forgotten_at is not None:
                continue
            if name in self._cipher.names:
                await registry.retain(db, name, self._cipher.retain(name, RETAINED))
            elif key.retained is not None:
                try:
                    await registry.retain(db, name, self._cipher.reseal_retained(name, key.retained))
                except SecretUnreadable:
                    log.error("retained_keys_unreadable", key=name)
