"""Sinks of a tenant's audit trail: special checks, the position of a new sink, and its job."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from gateway.catalog.audit_sinks import KIND, read_syslog_target
from gateway.catalog.credentials import find_obstacle
from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.origins import find_origin
from gateway.catalog.transaction import CatalogContext, OpenChanges
from gateway.domain.audit import OPERATOR_RULE
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.principals import Operator
from gateway.domain.updates.audit_sinks import SinkKind, SinkStatus, TrailSink
from gateway.errors import Fault, Forbidden, InvalidBody, ReferenceMissing
from gateway.kinds.deliveries import SINK
from gateway.store import jobs
from gateway.store.audit import places
from gateway.store.engine import Db
from gateway.store.jobs import Job
from gateway.store.kinds.audit_sinks import SINKS as ROWS
from gateway.store.kinds.singletons import POLICY


async def _check_sink(opened: OpenChanges, current: TrailSink | None, wanted: TrailSink) -> None:
    """Refuse a sink with an unusable target or credential, and a file that is not of the operator."""
    del current
    await _check_owner(opened, wanted)
    await _check(opened.tenant, opened.db, wanted)


async def _check_owner(opened: OpenChanges, sink: TrailSink) -> None:
    """Refuse another caller than the operator to create, change or remove a sink that writes a file."""
    if sink.kind is SinkKind.FILE and not isinstance(opened.by.caller, Operator):  # guard: sink-file-operator
        raise Forbidden("only the operator may create, change or remove a sink of the kind file", rule=OPERATOR_RULE)


async def _write_position(opened: OpenChanges, before: TrailSink | None, after: TrailSink | None) -> None:
    """Store the position of a new sink, and its job; a removed sink has none."""
    tenant, db = opened.tenant, opened.db
    if after is None:
        if before is not None:
            await jobs.remove(tenant, db, before.id)
        return
    if before is None and not after.whole:
        await places.save(tenant, db, after.id, await places.ends(tenant, db))
    await jobs.schedule(tenant, db, Job(tenant=tenant, id=after.id, kind=KIND, due_at=datetime.now(UTC)))


async def _read_status(tenant: TenantId, catalog: CatalogContext, found: Sequence[TrailSink]) -> Sequence[SinkStatus]:
    async with catalog.store.transaction(tenant) as db:
        waiting = [await places.oldest_behind(tenant, db, await places.load(tenant, db, one.id)) for one in found]
    return [replace(one.status, waiting_since=since) for one, since in zip(found, waiting, strict=True)]


async def _check(tenant: TenantId, db: Db, sink: TrailSink) -> None:
    """Refuse a sink with an unusable target or credential."""
    match sink.kind:
        case SinkKind.HTTPS:
            origin = find_origin(sink.target)
            if origin is None or not origin.startswith("https://"):
                raise _invalid("must be an absolute https URL")
            allowed = (await POLICY.get(tenant, db)).http_origins
            if allowed is not None and origin not in allowed:
                raise _missing("/target", "the tenant's policy does not allow requests to this origin")
            obstacle = None if sink.credential is None else await find_obstacle(tenant, db, sink.credential, origin)
            if obstacle is not None:
                raise _missing("/credential", obstacle)
            return
        case SinkKind.SYSLOG:
            if read_syslog_target(sink.target) is None:
                raise _invalid("must be tcp://host:port or tls://host:port")
        case SinkKind.FILE:
            if not sink.target.replace("-", "").replace("_", "").isalnum() or not sink.target.isascii():
                raise _invalid("must be a file name of letters, digits, - and _")  # guard: sink-file-name
    if sink.credential is not None:
        raise _missing("/credential", f"a sink of the kind {sink.kind} has no credential")


def _invalid(reason: str) -> InvalidBody:
    return InvalidBody(f"/target: {reason}", faults=[Fault(pointer="/target", reason=reason)])


def _missing(pointer: str, reason: str) -> ReferenceMissing:
    return ReferenceMissing(f"{pointer}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])


SINKS = Collection(
    kind=SINK,
    rows=ROWS,
    check=_check_sink,
    written=_write_position,
    removing=_check_owner,
    compute=_read_status,
)
