"""Watches, declared by tenants: URLs that the gateway polls to detect changes of resources."""

from datetime import UTC, datetime, timedelta
from random import uniform

from gateway.catalog.credentials import find_obstacle
from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.kinds.engines.limits import FIRST_POLL_S
from gateway.catalog.origins import find_origin
from gateway.catalog.transaction import OpenChanges
from gateway.catalog.updates.resource_updates import is_known
from gateway.catalog.updates.watches import KIND
from gateway.domain.identifiers import TenantId
from gateway.domain.updates.watches import Sighting, Watch
from gateway.errors import Fault, InvalidBody, ReferenceMissing
from gateway.kinds.updates import WATCH
from gateway.store import jobs
from gateway.store.jobs import Job
from gateway.store.kinds.singletons import POLICY
from gateway.store.kinds.watches import WATCHES as ROWS


async def _check(opened: OpenChanges, current: Watch | None, wanted: Watch) -> None:
    """Refuse a watch with an unusable URL, resource or credential."""
    del current
    tenant, db = opened.tenant, opened.db
    origin = find_origin(wanted.url)
    if origin is None:
        message = "must be an absolute http or https URL"
        raise InvalidBody(f"/url: {message}", faults=[Fault(pointer="/url", reason=message)])
    allowed = (await POLICY.get(tenant, db)).http_origins
    if allowed is not None and origin not in allowed:
        raise _missing("/url", "the tenant's policy does not allow requests to this origin")
    if not await is_known(tenant, opened.catalog, db, wanted.uri):
        raise _missing("/uri", "the tenant has no such resource")
    if wanted.credential is not None:
        obstacle = await find_obstacle(tenant, db, wanted.credential, origin)
        if obstacle is not None:
            raise _missing("/credential", obstacle)


def _missing(pointer: str, reason: str) -> ReferenceMissing:
    return ReferenceMissing(f"{pointer}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])


async def _schedule(opened: OpenChanges, before: Watch | None, after: Watch | None) -> None:
    """Make the first poll due within 2 s; it only stores the state at a new URL. A removed watch has no poll."""
    tenant, db = opened.tenant, opened.db
    if after is None:
        if before is not None:
            await jobs.remove(tenant, db, before.id)
        return
    if before is not None and before.url != after.url:
        await ROWS.note(tenant, db, after.id, Sighting())
    await jobs.schedule(tenant, db, _prompt_job(tenant, after))


def _prompt_job(tenant: TenantId, watch: Watch) -> Job:
    due_at = datetime.now(UTC) + timedelta(seconds=uniform(0, FIRST_POLL_S))  # noqa: S311  # only spreads the load
    return Job(tenant=tenant, id=watch.id, kind=KIND, due_at=due_at)


WATCHES = Collection(kind=WATCH, rows=ROWS, check=_check, written=_schedule)
