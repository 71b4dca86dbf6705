"""Attachments of live sources, as reported by `gateway.jobs.live`: attached with a discovery, detached, failed.

A definition that differs from the accepted one is held: clients do not see the primitive until an admin accepts it.
Each report locks the tenant's row. The revision advances only if clients see another catalog.
"""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from gateway.catalog.ceilings import policy_in_force
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.kinds.live_sources import LIVE_SOURCES, is_same
from gateway.catalog.live.discovery import Reading, read_discovery
from gateway.catalog.live.limits import MAX_NOTICE_LENGTH, MAX_NOTICES, MAX_REMEMBERED
from gateway.catalog.origins import find_origin
from gateway.catalog.transaction import GATEWAY, Author, CatalogChange, CatalogContext, announce, change, record
from gateway.definitions.excerpts import shorten
from gateway.definitions.limits import MAX_FAULTS
from gateway.definitions.live.page_uris import is_page
from gateway.domain.events import CatalogMoved
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.live_sources import (
    AttachmentEnd,
    AttachmentState,
    Discovery,
    LiveKind,
    LivePrimitive,
    LiveSource,
    LiveStatus,
    RememberedPrimitive,
)
from gateway.domain.primitives import Family
from gateway.domain.updates.source_changes import TextFinding
from gateway.errors import Conflict, Fault, ReferenceMissing
from gateway.store import primitives, tenants
from gateway.store.engine import Db, Store
from gateway.store.kinds.live_sources import LIVE_SOURCES as ROWS
from gateway.store.kinds.singletons import POLICY
from gateway.store.live import live_primitives, live_sources

_ROWS_AT_ONCE = 100
_BY = Author(caller=GATEWAY, correlation_id="")

_Key = tuple[Family, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Held definitions to accept: those with these names, or all.

    `digests` identify the definitions that the admin reviewed.
    """

    names: Sequence[str] | None = None
    digests: Collection[str] | None = None


async def load(tenant: TenantId, catalog: CatalogContext, source: LiveSourceId) -> LiveSource | None:
    """The live source, if it may be attached: it exists, is enabled, and the gateway allows its kind."""
    async with catalog.store.transaction(tenant) as db:
        found = await ROWS.get(tenant, db, source)
    if found is None or not found.enabled or not _is_allowed(catalog, found.kind):
        return None
    return found


async def is_permitted(tenant: TenantId, catalog: CatalogContext, source: LiveSource) -> bool:
    """True unless the tenant's policy no longer allows requests to the origin of an MCP server."""
    if source.kind is not LiveKind.MCP:
        return True
    async with catalog.store.transaction(tenant) as db:
        allowed = (await POLICY.get(tenant, db)).http_origins
    return allowed is None or find_origin(str(source.settings.get("url"))) in allowed


async def all_enabled(catalog: CatalogContext) -> Sequence[tuple[TenantId, LiveSourceId, LiveKind]]:
    """The live sources of all tenants that may be attached."""
    async with catalog.store.lookup() as db:
        return [one for one in await live_sources.all_enabled(db) if _is_allowed(catalog, one[2])]


async def record_attached(
    tenant: TenantId,
    catalog: CatalogContext,
    source: LiveSource,
    *,
    attachment: str,
    replica: str | None,
    discovery: Discovery,
) -> bool:
    """Store the discovery of an attached live source; it replaces the last one.

    Without `replica`, it is a later discovery of a recorded attachment. False if the source was changed, disabled or
    removed since `source` was read, or another attachment is recorded; nothing is stored then.
    """
    async with catalog.store.transaction(tenant) as db:
        known = await live_primitives.of_source(tenant, db, source.id)
        room = await _primitives_left(tenant, catalog, db, source.id)
    # Outside of transactions: thousands of definitions take seconds, and a transaction would hold its connection.
    reading = await run_in_thread(CATALOG_CHANGES, tenant, read_discovery, source, discovery, known, room=room)
    async with _report(tenant, catalog, source.id) as report:
        current = report.source
        # guard: live-report-stale
        if current is None or not current.enabled or not is_same(current, source):
            return False
        is_known = current.status.attachment == attachment and current.status.state is AttachmentState.ATTACHED
        if replica is None and not is_known:  # guard: live-rediscovery-of-another
            return False
        report.status = LiveStatus(
            state=AttachmentState.ATTACHED,
            attachment=attachment,
            replica=current.status.replica if replica is None else replica,
            title=shorten(discovery.title, MAX_NOTICE_LENGTH),
            since=current.status.since if is_known else datetime.now(UTC),
            notices=tuple(reading.notices),
            can_subscribe=discovery.can_subscribe,
        )
        # Read again inside the transaction: an admin may have accepted changes since `known` was read.
        before = await live_primitives.of_source(tenant, report.db, source.id)
        after = review(current, before, reading)
        await _store_differences(tenant, report.db, source.id, before, after=after)
        report.is_visible = (
            _visible(before) != _visible(after) or current.status.can_subscribe != discovery.can_subscribe
        )
        report.entry.detail |= {"attachment": attachment, "replica": report.status.replica, **_counts(after)}
    return True


async def record_detached(
    tenant: TenantId, catalog: CatalogContext, source: LiveSourceId, end: AttachmentEnd, *, attachment: str
) -> bool:
    """Hide the primitives of a live source whose attachment has ended; False if another attachment is recorded."""
    async with _report(tenant, catalog, source, action="live_source.detach") as report:
        current = report.source
        if current is None or not attachment or current.status.attachment != attachment:  # guard: live-detach-other
            return False
        report.status = _ended(current.status, end)
        report.is_visible = await live_primitives.hide(tenant, report.db, source) > 0
        report.entry.detail |= {"attachment": attachment, "fault": report.status.fault}
    return True


async def record_failure(tenant: TenantId, catalog: CatalogContext, source: LiveSourceId, end: AttachmentEnd) -> None:
    """Store a failed attempt to attach. A recorded attachment stays; `record_detached` ends it."""
    async with _report(tenant, catalog, source) as report:
        if report.source is not None and report.source.status.state is not AttachmentState.ATTACHED:
            report.status = _ended(report.source.status, end)


async def add_notice(tenant: TenantId, store: Store, source: LiveSourceId, text: str) -> None:
    """Add a notice to the status of an attached live source, unless the status has it or is full."""
    async with store.transaction(tenant) as db:
        await live_sources.add_notice(tenant, db, source, shorten(text, MAX_NOTICE_LENGTH), most=MAX_NOTICES)


async def accept_changes(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    wanted: Acceptance,
    *,
    by: Author,
    expected: Expected = None,
) -> LiveSource:
    """Accept held definitions.

    Raises:
        NotFound: the tenant has no such live source.
        PreconditionFailed: the current version matches no expected tag.
        ReferenceMissing: no definition of a given name is held.
        Conflict: a definition is not among `digests`, because it has changed since.
    """
    entry = CatalogChange(action="live_source.accept", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        source = await LIVE_SOURCES.find(tenant, db, name)
        check_version(source, expected)
        held = [
            one
            for one in await live_primitives.of_source(tenant, db, source.id)
            if one.is_present and one.primitive.is_held
        ]
        chosen = held if wanted.names is None else [one for one in held if one.primitive.name in wanted.names]
        _refuse_unknown(chosen, wanted.names or ())
        seen = wanted.digests
        if seen is not None and any(one.primitive.digest not in seen for one in chosen):  # guard: live-accept-seen
            raise Conflict("a definition has changed since it was read; read the live source again")
        await live_primitives.apply_changes(
            tenant, db, source.id, removed=chosen, added=[_accepted(one.primitive, one.findings) for one in chosen]
        )
        entry.target = source.name
        entry.detail = {
            "id": source.id,
            "accepted": [f"{one.primitive.name} {one.primitive.digest}"[:MAX_NOTICE_LENGTH] for one in chosen],
        }
        return source


def review(
    source: LiveSource, before: Sequence[RememberedPrimitive], reading: Reading
) -> Sequence[RememberedPrimitive]:
    """The primitives to remember: those discovered, held if they need a review, and absent ones that were accepted.

    The first discovery is accepted whole. Later, changed primitives, new tools and new pages are held unless the source
    accepts changes.
    """
    known = {_key(one.primitive): one for one in before}
    is_first = all(one.accepted_digest is None for one in before)
    present: list[RememberedPrimitive] = []
    for found in reading.primitives:
        old, findings = known.pop(_key(found), None), reading.findings.get(_key(found), ())
        accepted = None if old is None else old.accepted_digest
        is_new = accepted is None and (is_first or not (found.family is Family.TOOL or is_page(found.name)))
        if source.accepts_changes or accepted == found.digest or is_new:  # guard: live-review
            present.append(_accepted(found, findings))
        else:
            last_definition = None if old is None or old.primitive.is_held else old.primitive.definition
            present.append(
                RememberedPrimitive(
                    primitive=replace(found, is_held=True),
                    accepted_digest=accepted,
                    accepted_definition=last_definition or (None if old is None else old.accepted_definition),
                    findings=findings,
                )
            )
    absent = [replace(one, is_present=False) for one in known.values() if one.accepted_digest is not None]
    absent.sort(key=lambda one: one.primitive.family is not Family.TOOL)
    return [*present, *absent[: MAX_REMEMBERED - len(present)]]


@dataclass(slots=True)
class _Report:
    """One report in its transaction. `status` is stored if it is set; `is_visible` advances the revision."""

    db: Db
    source: LiveSource | None
    entry: CatalogChange
    status: LiveStatus | None = None
    is_visible: bool = False


@asynccontextmanager
async def _report(
    tenant: TenantId, catalog: CatalogContext, source: LiveSourceId, *, action: str = "live_source.attach"
) -> AsyncGenerator[_Report]:
    revision: int | None = None
    async with catalog.store.transaction(tenant) as db:
        exists = await tenants.lock(tenant, db) is not None
        found = await ROWS.get(tenant, db, source) if exists else None
        entry = CatalogChange(action=action, target="" if found is None else found.name, detail={"id": source})
        report = _Report(db=db, source=found, entry=entry)
        yield report
        if report.status is not None:
            await ROWS.note(tenant, db, source, report.status)
        if report.is_visible:
            revision = await tenants.advance(tenant, db)
            await record(tenant, catalog, entry, db=db, by=_BY, revision=revision)
    if revision is not None:
        await announce(catalog, CatalogMoved(tenant=tenant, revision=revision))


async def _store_differences(
    tenant: TenantId,
    db: Db,
    source: LiveSourceId,
    before: Sequence[RememberedPrimitive],
    *,
    after: Sequence[RememberedPrimitive],
) -> None:
    """Store the differences in parts, because preparing rows blocks the event loop."""
    stored = {_key(one.primitive): one for one in before}
    added = [one for one in after if stored.get(_key(one.primitive)) != one]
    remembered = {_key(one.primitive) for one in after}
    replaced = {_key(one.primitive) for one in added}
    removed = [one for key, one in stored.items() if key not in remembered or key in replaced]
    await live_primitives.apply_changes(tenant, db, source, removed=removed, added=())
    for start in range(0, len(added), _ROWS_AT_ONCE):
        await live_primitives.apply_changes(tenant, db, source, removed=(), added=added[start : start + _ROWS_AT_ONCE])


async def _primitives_left(tenant: TenantId, catalog: CatalogContext, db: Db, source: LiveSourceId) -> int:
    """Number of primitives that the tenant may have at this live source."""
    allowed = (await policy_in_force(tenant, db, catalog.options.ceilings)).limits.primitives
    return allowed - await primitives.count(tenant, db, exclude=source)


def _ended(before: LiveStatus, end: AttachmentEnd) -> LiveStatus:
    state = AttachmentState.DETACHED if end.fault is None else AttachmentState.FAILED
    return LiveStatus(
        state=state,
        since=before.since if before.state is state else datetime.now(UTC),
        title=before.title,
        fault=None if end.fault is None else shorten(end.fault, MAX_NOTICE_LENGTH),
        failures=end.failures,
        retry_at=end.retry_at,
    )


def _is_allowed(catalog: CatalogContext, kind: LiveKind) -> bool:
    return kind is not LiveKind.COMMAND or catalog.options.live_commands  # guard: live-command-attached


def _accepted(found: LivePrimitive, findings: tuple[TextFinding, ...]) -> RememberedPrimitive:
    accepted = replace(found, is_held=False)
    return RememberedPrimitive(primitive=accepted, accepted_digest=found.digest, findings=findings)


def _key(primitive: LivePrimitive) -> _Key:
    return primitive.family, primitive.remote


def _visible(remembered: Sequence[RememberedPrimitive]) -> Mapping[_Key, LivePrimitive | None]:
    """The primitives that clients see, and the reserved names of those that they do not see."""
    return {
        _key(one.primitive): one.primitive if one.is_offered else None
        for one in remembered
        if one.accepted_digest is not None
    }


def _counts(remembered: Sequence[RememberedPrimitive]) -> dict[str, object]:
    present = [one.primitive for one in remembered if one.is_present]
    counts: dict[str, object] = {
        family.value: sum(one.family is family and not one.is_held for one in present) for family in Family
    }
    return {**counts, "held": sum(one.is_held for one in present)}


def _refuse_unknown(chosen: Sequence[RememberedPrimitive], names: Sequence[str]) -> None:
    known = {one.primitive.name for one in chosen}
    faults = [
        Fault(pointer=f"/names/{position}", reason="no definition of this name is held")
        for position, name in enumerate(names)
        if name not in known
    ]
    if faults:
        raise ReferenceMissing(f"{faults[0].pointer}: {faults[0].reason}", faults=faults[:MAX_FAULTS])
