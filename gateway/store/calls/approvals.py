"""Approvals of a tenant. The request shown to approvers is encrypted; each change of state is a conditional update.

PostgreSQL's clock decides on expiries and leases, so that all replicas agree.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from sqlalchemy import ColumnElement, RowMapping, Select, and_, case, delete, func, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.calls.approvals import OPEN_STATES, Approval, ApprovalFilter, ApprovalState, RequestShown
from gateway.domain.identifiers import ApprovalId, TenantId
from gateway.domain.order import Order
from gateway.store.calls.tables import approvals
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.kinds.record_rows import columns_of, read_record
from gateway.store.pagination import select_page
from gateway.store.secrets import tenant_key
from gateway.store.tables import data_keys

_columns = approvals.c
_OPEN = [state.value for state in sorted(OPEN_STATES)]
_UNDECIDED = [ApprovalState.PENDING.value, ApprovalState.APPROVED.value]

_NEWEST_FIRST = Order(by="created_at", is_descending=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claim of one run on an approval: random name, `credential_identity` of the call, and lease."""

    name: str
    credentials: bytes
    lease: timedelta


async def lock(tenant: TenantId, db: Db) -> None:
    """Block other transactions from creating an approval of this tenant until this one ends."""
    await db.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"approvals {tenant}", 0))))


async def insert(
    tenant: TenantId,
    db: Db,
    sealer: EnvelopeCipher,
    approval: Approval,
    *,
    fingerprint: bytes,
    credentials: bytes,
) -> None:
    """Add an approval."""
    bound, (key_id, wrapped) = context_of(approval.id, approval.digest), await tenant_key(tenant, db, sealer)
    shown = msgspec.msgpack.encode(_SealedContent(request=approval.request, warnings=approval.warnings))
    added = {
        "fingerprint": fingerprint,
        "credentials": credentials,
        "data_key_id": key_id,
        "sealed": sealer.seal(tenant, wrapped, shown, *bound),  # guard: approval-sealed
    }
    await db.execute(insert_into(approvals).values(**columns_of(approval, "request", "warnings"), **added))


async def get(tenant: TenantId, db: Db, sealer: EnvelopeCipher, approval: ApprovalId) -> Approval | None:
    """The approval with this id.

    Raises:
        SecretUnreadable: the stored request was changed, or no configured key decrypts it.
    """
    row = await _find_row(tenant, db, _columns.id == approval)
    return None if row is None else _approval(tenant, sealer, row)


async def get_attached(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, fingerprint: bytes, *, denied_for: timedelta
) -> tuple[Approval, bytes] | None:
    """The open approval of an identical call, or a denial within `denied_for`, with its `credential_identity`.

    Raises:
        SecretUnreadable: the stored request was changed, or no configured key decrypts it.
    """
    is_running = _columns.state == ApprovalState.RUNNING.value
    is_open = is_running | (_columns.state.in_(_UNDECIDED) & (_columns.expires_at > func.now()))
    is_denied = (_columns.state == ApprovalState.DENIED.value) & (_columns.ended_at > func.now() - denied_for)
    row = await _find_row(tenant, db, (_columns.fingerprint == fingerprint) & (is_open | is_denied))
    return None if row is None else (_approval(tenant, sealer, row), row["credentials"])


async def last_run(tenant: TenantId, db: Db, fingerprint: bytes) -> tuple[ApprovalState, datetime] | None:
    """State and end time of the last approved run of an identical call; None if there was none."""
    ran = _columns.state.in_([ApprovalState.DONE.value, ApprovalState.UNKNOWN.value])
    query = select(_columns.state, _columns.ended_at).where(
        _columns.tenant_id == tenant, _columns.fingerprint == fingerprint, ran
    )
    row = (await db.execute(query.order_by(_columns.ended_at.desc()).limit(1))).one_or_none()
    return None if row is None else (ApprovalState(row[0]), row[1])


async def state_of(tenant: TenantId, db: Db, approval: ApprovalId) -> ApprovalState | None:
    """The state of an approval; an open approval past its expiry counts as expired."""
    is_past = _columns.state.in_(_UNDECIDED) & (_columns.expires_at <= func.now())
    state = case((is_past, ApprovalState.EXPIRED.value), else_=_columns.state)
    found = (await db.execute(select(state).where(*_matches_id(tenant, approval)))).scalar_one_or_none()
    return None if found is None else ApprovalState(found)


async def page(
    tenant: TenantId,
    db: Db,
    sealer: EnvelopeCipher,
    *,
    after: str | None,
    limit: int,
    filters: ApprovalFilter,
) -> Sequence[Approval]:
    """One page of the tenant's approvals that match the filter, the newest first.

    Raises:
        SecretUnreadable: a stored request was changed, or no configured key decrypts it.
    """
    columns = {"state": filters.state, "tool": filters.tool, "subject": filters.subject}
    own = _select(tenant).where(*(_columns[name] == value for name, value in columns.items() if value is not None))
    query = select_page(own, _columns, "id", after=after, limit=limit, order=_NEWEST_FIRST)
    return [_approval(tenant, sealer, row) for row in (await db.execute(query)).mappings()]


async def count_open(tenant: TenantId, db: Db, subject: str) -> tuple[int, int]:
    """Number of open approvals of the tenant, and of the subject."""
    counted = select(func.count(), func.count().filter(_columns.subject == subject))
    is_open = (_columns.tenant_id == tenant, _columns.state.in_(_OPEN))
    row = (await db.execute(counted.where(*is_open))).one()
    return int(row[0]), int(row[1])


async def decide(
    tenant: TenantId, db: Db, approval: ApprovalId, *, decided: Mapping[str, object], usable: timedelta
) -> bool:
    """Decide a pending approval; False unless it is pending, not expired, and requested by another subject than the
    decider.

    `decided` has the columns `state`, `decided_by`, `decider_subject` and `comment`. An approved call may run for
    `usable`.
    """
    is_approved = decided["state"] == ApprovalState.APPROVED.value
    values = {**decided, "decided_at": func.now(), "ended_at": None if is_approved else func.now()}
    expires_at = {"expires_at": func.now() + usable} if is_approved else {}
    return await _update_if(
        tenant,
        db,
        approval,
        _columns.state == ApprovalState.PENDING.value,
        _columns.expires_at > func.now(),
        _columns.subject != decided["decider_subject"],  # guard: approval-by-another-subject-stored
        **values,
        **expires_at,
    )


async def claim(tenant: TenantId, db: Db, approval: ApprovalId, claim: Claim) -> bool:
    """Change an approval from approved to running, under a lease; False if it is not approved or no longer valid."""
    return await _update_if(
        tenant,
        db,
        approval,
        _columns.state == ApprovalState.APPROVED.value,  # guard: approval-once
        _columns.expires_at > func.now(),  # guard: approval-expires
        _columns.credentials == claim.credentials,  # guard: approval-credentials-current
        state=ApprovalState.RUNNING.value,
        claim=claim.name,
        started_at=func.now(),
        leased_until=func.now() + claim.lease,
    )


async def take_over(tenant: TenantId, db: Db, approval: ApprovalId, claim: Claim, *, earlier: str) -> bool:
    """Continue a run in the next round of its call: `claim` replaces the claim of the earlier round."""
    return await _update_if(
        tenant,
        db,
        approval,
        *_is_claimed(_parked(earlier)),  # guard: approval-parked
        _columns.leased_until > func.now(),
        _columns.credentials == claim.credentials,
        claim=claim.name,
        leased_until=func.now() + claim.lease,
    )


async def park(tenant: TenantId, db: Db, approval: ApprovalId, claim: str, *, lease: timedelta) -> bool:
    """Suspend a run until the next round of its call; only a parked claim can be taken over."""
    leased_until = func.now() + lease
    return await _update_if(tenant, db, approval, *_is_claimed(claim), claim=_parked(claim), leased_until=leased_until)


async def renew(tenant: TenantId, db: Db, claims: Collection[str], *, lease: timedelta) -> None:
    """Extend the leases of running approvals that hold these claims, unless a lease has expired."""
    is_held = (_columns.tenant_id == tenant, _columns.claim.in_(claims), _columns.leased_until > func.now())
    is_running = _columns.state == ApprovalState.RUNNING.value
    await db.execute(update(approvals).where(*is_held, is_running).values(leased_until=func.now() + lease))


async def finish(tenant: TenantId, db: Db, approval: ApprovalId, claim: str, *, outcome: str | None) -> bool:
    """Store the outcome of a run, or make its approval usable again if None; False if its lease has expired."""
    ended: dict[str, object] = {"state": ApprovalState.DONE.value, "outcome": outcome, "ended_at": func.now()}
    if outcome is None:
        ended = {"state": ApprovalState.APPROVED.value, "claim": None, "started_at": None, "leased_until": None}
    return await _update_if(tenant, db, approval, *_is_claimed(claim), **ended)


async def supersede(tenant: TenantId, db: Db, approval: ApprovalId) -> bool:
    """End a pending or approved approval whose tool, policy or credential has changed."""
    return bool(await _supersede(tenant, db, [_columns.id == approval], limit=1))


async def supersede_of_tools(
    tenant: TenantId, db: Db, tools: Collection[str], *, before: datetime, limit: int, action: str = "call"
) -> Sequence[ApprovalId]:
    """End pending and approved approvals for calls of these tools that are older than a change of the tools.

    With the action `read` or `get`, those for reads of resources with these URIs, or for prompts of these names.
    """
    is_older_call = (_columns.action == action, _columns.tool.in_(tools), _columns.created_at < before)
    return await _supersede(tenant, db, is_older_call, limit=limit)


async def _supersede(
    tenant: TenantId, db: Db, conditions: Sequence[ColumnElement[bool]], *, limit: int
) -> Sequence[ApprovalId]:
    matches = (_columns.tenant_id == tenant, _columns.state.in_(_UNDECIDED), *conditions)
    found = _once(select(_columns.id).where(*matches).limit(limit).with_for_update())
    ended = {"state": ApprovalState.SUPERSEDED.value, "ended_at": func.now(), "version": _columns.version + 1}
    changed = update(approvals).where(_columns.tenant_id == tenant, _columns.id.in_(found)).values(**ended)
    return [ApprovalId(row) for row in (await db.execute(changed.returning(_columns.id))).scalars()]


def _once(found: Select[str]) -> Select[str]:
    """Have PostgreSQL run this query once: it may repeat a subquery that locks rows, and so exceed its limit."""
    return select(found.cte("found").c.id)


async def end_overdue(
    tenant: TenantId, db: Db, *, limit: int, fingerprint: bytes | None = None
) -> Sequence[ApprovalId]:
    """End overdue approvals: open ones expire, and the outcome of running ones becomes unknown.

    At most `limit` approvals are ended; with `fingerprint`, only those of that call.
    """
    is_running = _columns.state == ApprovalState.RUNNING.value
    is_lost = is_running & (_columns.leased_until <= func.now())  # guard: approval-lease
    is_past = _columns.state.in_(_UNDECIDED) & (_columns.expires_at <= func.now())
    conditions = [_columns.tenant_id == tenant, is_lost | is_past]
    if fingerprint is not None:
        conditions.append(_columns.fingerprint == fingerprint)
    found = _once(select(_columns.id).where(*conditions).limit(limit).with_for_update(skip_locked=True))
    state = case((is_running, ApprovalState.UNKNOWN.value), else_=ApprovalState.EXPIRED.value)
    ended = (
        update(approvals)
        .where(_columns.tenant_id == tenant, _columns.id.in_(found))
        .values(state=state, ended_at=func.now(), version=_columns.version + 1)
        .returning(_columns.id)
    )
    return [ApprovalId(row) for row in (await db.execute(ended)).scalars()]


async def remove_old(tenant: TenantId, db: Db, *, kept: timedelta, limit: int) -> None:
    """Delete ended approvals that are older than `kept`, and all but the newest `limit`."""
    is_ended = (_columns.tenant_id == tenant, _columns.state.not_in(_OPEN))
    await db.execute(delete(approvals).where(*is_ended, _columns.ended_at < func.now() - kept))
    beyond = select(_columns.id).where(*is_ended).order_by(_columns.ended_at.desc()).offset(limit)
    await db.execute(delete(approvals).where(_columns.tenant_id == tenant, _columns.id.in_(beyond)))


async def next_due(tenant: TenantId, db: Db, *, kept: timedelta) -> datetime | None:
    """The time at which the next approval expires, loses its lease or is deleted; None without approvals."""
    moment = case(
        (_columns.state == ApprovalState.RUNNING.value, _columns.leased_until),
        (_columns.state.in_(_UNDECIDED), _columns.expires_at),
        else_=_columns.ended_at + kept,
    )
    found: datetime | None = (await db.execute(select(func.min(moment)).where(_columns.tenant_id == tenant))).scalar()
    return found


class _SealedContent(msgspec.Struct, frozen=True):
    """The encrypted part of an approval."""

    request: RequestShown
    warnings: tuple[str, ...]


_decode = msgspec.msgpack.Decoder(_SealedContent).decode


def context_of(approval: str, digest: bytes) -> tuple[str, ...]:
    """The encryption context of an approval's stored request."""
    return ("approval", approval, digest.hex())


def _matches_id(tenant: TenantId, approval: ApprovalId) -> tuple[ColumnElement[bool], ...]:
    return (_columns.tenant_id == tenant, _columns.id == approval)


def _is_claimed(claim: str) -> tuple[ColumnElement[bool], ...]:
    return (_columns.state == ApprovalState.RUNNING.value, _columns.claim == claim)


def _parked(claim: str) -> str:
    return f"{claim}/parked"


async def _update_if(
    tenant: TenantId, db: Db, approval: ApprovalId, *conditions: ColumnElement[bool], **values: object
) -> bool:
    """Change an approval by one conditional update; True if the conditions were met."""
    changed = update(approvals).where(*_matches_id(tenant, approval), *conditions)
    counted = changed.values(**values, version=_columns.version + 1).returning(_columns.id)
    return (await db.execute(counted)).one_or_none() is not None


def _select(tenant: TenantId) -> Select[*tuple[object, ...]]:
    of_key = and_(data_keys.c.tenant_id == _columns.tenant_id, data_keys.c.id == _columns.data_key_id)
    query = select(*_columns, data_keys.c.wrapped).join_from(approvals, data_keys, of_key)
    return query.where(_columns.tenant_id == tenant)


async def _find_row(tenant: TenantId, db: Db, matches: ColumnElement[bool]) -> RowMapping | None:
    newest_open = (_columns.ended_at.is_(None).desc(), _columns.created_at.desc())
    return (await db.execute(_select(tenant).where(matches).order_by(*newest_open).limit(1))).mappings().one_or_none()


def _approval(tenant: TenantId, sealer: EnvelopeCipher, row: RowMapping) -> Approval:
    plain = _decode(sealer.open(tenant, row["wrapped"], row["sealed"], *context_of(row["id"], row["digest"])))
    return read_record(Approval, row, request=plain.request, warnings=plain.warnings)
