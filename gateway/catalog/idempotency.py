"""Requests that may be repeated: each `Idempotency-Key` of a principal is done once, and its answer is kept for a day.

Reserve a record, run the request with the attempt in its `Author`, then keep the answer or release the record. The
change marks the record as done in its own transaction, so a record that is not done belongs to a request that changed
nothing, whatever became of the replica. An attempt that was overtaken cannot commit.

Kept answers may hold a new key's text. Each is sealed by a data key of its own record, is bound to tenant and record,
and is opened for the principal that sent the request alone.
"""

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from gateway.catalog.transaction import CatalogContext
from gateway.domain.idempotency import Attempt, KeptAnswer
from gateway.domain.identifiers import TenantId, mint
from gateway.domain.refusals import AnswerNotKept, IdempotencyKeyReused, RequestInProgress
from gateway.domain.tenancy.principals import Caller, Operator
from gateway.errors import LimitExceeded, SecretUnreadable
from gateway.store import idempotency, jobs
from gateway.store.engine import Db
from gateway.store.idempotency import IdempotencyRecord
from gateway.store.jobs import Job

KIND = "idempotency"
KEPT = timedelta(hours=24)
LEASE = timedelta(minutes=10)
"""Longer than any request of the admin API takes; afterwards its replica is taken for dead."""
MOST = 1000
"""Records of the tenant's keys together, and as many of the operator."""
LARGEST = 1024 * 1024
MOST_BYTES = 16 * 1024 * 1024
"""Compressed bytes of one kept body, and of all that a tenant's keys or the operator have in one tenant."""
_RETRY_S = 1.0
_REQUEST, _ANSWER = "request", "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRequest:
    """A request with its key; `parts` are all that makes it this request and no other."""

    caller: Caller
    key: str
    parts: Sequence[bytes]


async def reserve(tenant: TenantId, catalog: CatalogContext, request: KeyedRequest) -> Attempt | KeptAnswer:
    """The attempt that may run now, or the answer that the request had.

    Raises:
        IdempotencyKeyReused: the principal sent another request under this key.
        RequestInProgress: it runs at this moment.
        AnswerNotKept: it was done, but its answer cannot be repeated.
        LimitExceeded: there are as many records as may be.
        NotFound: the tenant is gone.
    """
    now = datetime.now(UTC)
    attempt = Attempt(record=_digest([request.caller.name.encode(), request.key.encode()]).hex(), id=mint("att"))
    async with catalog.store.transaction(tenant) as db:
        await _forget_expired(tenant, db, now)
        record = await idempotency.get(tenant, db, attempt.record)
        if record is None:
            await _check_room(tenant, db, request.caller)
            if await idempotency.insert(tenant, db, _new_record(tenant, catalog, request, attempt, now)):
                await jobs.put(tenant, db, _clean_up(tenant, now + KEPT))
                return attempt
            raise _in_progress()
        _check_same(tenant, catalog, request, record)
        if record.answer is None and record.leased_until > now:  # done or not: the answer is on its way
            raise _in_progress()
        if record.is_done:
            return _open_answer(tenant, catalog, record)
        await idempotency.lease(tenant, db, attempt, until=now + LEASE)
        return attempt


async def keep(tenant: TenantId, catalog: CatalogContext, attempt: Attempt, answer: KeptAnswer) -> None:
    """Seal and store the answer; its body only where it and all kept ones are within their limits."""
    packed = None if answer.body is None else zlib.compress(answer.body)
    async with catalog.store.transaction(tenant) as db:
        record = await idempotency.get(tenant, db, attempt.record)
        if record is None or record.attempt != attempt.id:
            return
        _, taken = await idempotency.usage(tenant, db, is_operators=record.is_operators)
        if packed is not None and (len(packed) > LARGEST or taken + len(packed) > MOST_BYTES):
            packed = None
        plain = msgspec.msgpack.encode((answer.status, dict(answer.headers), packed))
        sealed = catalog.sealer.seal(tenant, record.wrapped, plain, KIND, record.id, _ANSWER)
        await idempotency.keep(tenant, db, attempt, sealed)


async def release(tenant: TenantId, catalog: CatalogContext, attempt: Attempt) -> None:
    """Forget a request that changed nothing, so that it may be sent again; one whose change was committed stays."""
    async with catalog.store.transaction(tenant) as db:
        await idempotency.release(tenant, db, attempt, now=datetime.now(UTC))


async def clean_up(catalog: CatalogContext, due: Job) -> None:
    """Forget a tenant's expired records, and come back when the next one expires."""
    now = datetime.now(UTC)
    async with catalog.store.upkeep(due.tenant) as db:
        if not await jobs.move(due.tenant, db, due.id, seen=due.due_at, to=now + LEASE):
            return
        next_at = await idempotency.remove_expired(due.tenant, db, now=now)
        if next_at is None:
            await jobs.remove(due.tenant, db, due.id)
        else:
            await jobs.put(due.tenant, db, _clean_up(due.tenant, next_at))


async def _forget_expired(tenant: TenantId, db: Db, now: datetime) -> None:
    await idempotency.remove_expired(tenant, db, now=now)


async def _check_room(tenant: TenantId, db: Db, caller: Caller) -> None:
    count, _ = await idempotency.usage(tenant, db, is_operators=isinstance(caller, Operator))
    if count >= MOST:
        said = f"the tenant has {MOST} requests with an Idempotency-Key of the last 24 hours, the most it may have"
        raise LimitExceeded(f"{said}; send the request without one, or wait", retry_after_s=LEASE.total_seconds())


def _new_record(
    tenant: TenantId, catalog: CatalogContext, request: KeyedRequest, attempt: Attempt, now: datetime
) -> IdempotencyRecord:
    wrapped = catalog.sealer.new_tenant_key(tenant)
    fingerprint = _digest(request.parts)  # sealed: a digest of a body with a short secret in it could be guessed
    return IdempotencyRecord(
        id=attempt.record,
        is_operators=isinstance(request.caller, Operator),
        wrapped=wrapped,
        request=catalog.sealer.seal(tenant, wrapped, fingerprint, KIND, attempt.record, _REQUEST),
        attempt=attempt.id,
        leased_until=now + LEASE,
        expires_at=now + KEPT,
    )


def _check_same(tenant: TenantId, catalog: CatalogContext, request: KeyedRequest, record: IdempotencyRecord) -> None:
    try:
        seen = catalog.sealer.open(tenant, record.wrapped, record.request, KIND, record.id, _REQUEST)
    except SecretUnreadable:
        raise AnswerNotKept(
            "the request under this Idempotency-Key cannot be read any more: see what there is, then use another key"
        ) from None
    if seen != _digest(request.parts):
        raise IdempotencyKeyReused(
            "this Idempotency-Key belongs to another request of the last 24 hours; use a new key for each request"
        )


def _open_answer(tenant: TenantId, catalog: CatalogContext, record: IdempotencyRecord) -> KeptAnswer:
    if record.answer is None:
        raise AnswerNotKept("the request was done, but its replica ended before the answer was kept; see what there is")
    plain = catalog.sealer.open(tenant, record.wrapped, record.answer, KIND, record.id, _ANSWER)
    status, headers, packed = msgspec.msgpack.decode(plain, type=tuple[int, dict[str, str], bytes | None])
    if packed is None:
        place = headers.get("location")
        said = f"the request was done (status {status}), but its answer was too large to be kept"
        raise AnswerNotKept(f"{said}; read {place}" if place else f"{said}; see what there is")
    return KeptAnswer(status=status, headers=headers, body=zlib.decompress(packed))


def _clean_up(tenant: TenantId, at: datetime) -> Job:
    return Job(tenant=tenant, id=KIND, kind=KIND, due_at=at)


def _in_progress() -> RequestInProgress:
    return RequestInProgress(
        "the request with this Idempotency-Key is under way; send it again in a moment", retry_after_s=_RETRY_S
    )


def _digest(parts: Sequence[bytes]) -> bytes:
    """SHA-256 of the parts with their lengths, so that no two lists of parts look the same."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.digest()
