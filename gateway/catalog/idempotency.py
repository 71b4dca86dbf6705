"""Idempotent requests: for 24 hours, each `Idempotency-Key` of a principal changes the catalog at most once.

The caller reserves a record and runs the request with the attempt in its `Author`. Then it stores the response, or
releases the record. The change marks the record as done in its own transaction. So if a record is not done, its request
changed nothing, even if the replica died. An attempt that lost its record to a later attempt cannot commit.

A stored response may contain the text of a new API key. Each response is sealed with a data key of its record and bound
to tenant and record. Only the principal that sent the request receives the response.
"""

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from gateway.catalog.limits import MAX_RECORDS, MAX_RESPONSE_BYTES, MAX_RESPONSES_BYTES, RUNNING_RETRY_S
from gateway.catalog.transaction import CatalogContext
from gateway.domain.http.idempotency import Attempt, StoredResponse
from gateway.domain.identifiers import TenantId, mint
from gateway.domain.refusals import AnswerNotKept, IdempotencyKeyReused, RequestInProgress
from gateway.domain.tenancy.principals import Caller, Operator
from gateway.errors import LimitExceeded, SecretUnreadable
from gateway.store import idempotency, jobs
from gateway.store.engine import Db
from gateway.store.idempotency import IdempotencyRecord
from gateway.store.jobs import Job

KIND = "idempotency"
RECORD_LIFETIME = timedelta(hours=24)
LEASE = timedelta(minutes=10)
"""Lease of an attempt, longer than any admin request takes. After the lease ends, the attempt is considered failed."""
_REQUEST, _RESPONSE = "request", "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRequest:
    """A request with its `Idempotency-Key`. `parts` identify the request: a retry has the same parts."""

    caller: Caller
    key: str
    parts: Sequence[bytes]


async def reserve(tenant: TenantId, catalog: CatalogContext, request: KeyedRequest) -> Attempt | StoredResponse:
    """Reserve the key: return the attempt to run now, or the stored response of an earlier attempt.

    Raises:
        IdempotencyKeyReused: the principal sent another request under this key.
        RequestInProgress: another attempt at the request is running, or its response is not stored yet.
        AnswerNotKept: the record cannot be read, or the request was completed without a stored response.
        SecretUnreadable: the stored response was changed in the database.
        LimitExceeded: the tenant's keys or the operator have reached the limit of records.
        NotFound: the tenant does not exist.
    """
    now = datetime.now(UTC)
    # guard: idempotency-of-the-principal
    attempt = Attempt(record=_digest([request.caller.name.encode(), request.key.encode()]).hex(), id=mint("att"))
    async with catalog.store.transaction(tenant) as db:
        await idempotency.remove_expired(tenant, db, now=now)
        record = await idempotency.get(tenant, db, attempt.record)
        if record is None:
            await _check_record_limit(tenant, db, request.caller)
            if await idempotency.insert(tenant, db, _new_record(tenant, catalog, request, attempt, now=now)):
                await jobs.schedule(tenant, db, _clean_up(tenant, now + RECORD_LIFETIME))
                return attempt
            raise _in_progress()
        _check_same_request(tenant, catalog, request, record)
        if record.answer is None and record.leased_until > now:  # completed or failed: the response is not stored yet
            raise _in_progress()
        if record.is_done:
            return _open_response(tenant, catalog, record)
        await idempotency.lease(tenant, db, attempt, until=now + LEASE)
        return attempt


async def keep(tenant: TenantId, catalog: CatalogContext, attempt: Attempt, answer: StoredResponse) -> None:
    """Seal and store the response, unless a later attempt has taken over the record.

    The body is omitted if it exceeds a limit.
    """
    packed = None if answer.body is None else zlib.compress(answer.body)
    async with catalog.store.transaction(tenant) as db:
        record = await idempotency.get(tenant, db, attempt.record)
        if record is None or record.attempt != attempt.id:
            return
        _, taken = await idempotency.usage(tenant, db, is_operators=record.is_operators)
        # guard: idempotency-bytes-capped
        if packed is not None and (len(packed) > MAX_RESPONSE_BYTES or taken + len(packed) > MAX_RESPONSES_BYTES):
            packed = None
        plain = msgspec.msgpack.encode((answer.status, dict(answer.headers), packed))
        sealed = catalog.sealer.seal(tenant, record.wrapped, plain, KIND, record.id, _RESPONSE)
        await idempotency.store_response(tenant, db, attempt, sealed)


async def release(tenant: TenantId, catalog: CatalogContext, attempt: Attempt) -> None:
    """Delete the record of a request that changed nothing, so that a retry is executed.

    The record of a committed request stays, and its lease ends.
    """
    async with catalog.store.transaction(tenant) as db:
        await idempotency.release(tenant, db, attempt, now=datetime.now(UTC))


async def clean_up(catalog: CatalogContext, due: Job) -> None:
    """Delete a tenant's expired records, and move the job to the time at which the next one expires."""
    now = datetime.now(UTC)
    async with catalog.store.upkeep(due.tenant) as db:
        next_at = await idempotency.remove_expired(due.tenant, db, now=now)
        is_unchanged = await jobs.reschedule(due.tenant, db, due.id, seen=due.due_at, to=next_at or now)
        if is_unchanged and next_at is None:
            await jobs.remove(due.tenant, db, due.id)


async def _check_record_limit(tenant: TenantId, db: Db, caller: Caller) -> None:
    count, _ = await idempotency.usage(tenant, db, is_operators=isinstance(caller, Operator))
    if count >= MAX_RECORDS:  # guard: idempotency-capped
        message = f"too many requests with an Idempotency-Key (limit {MAX_RECORDS} per tenant in 24 hours)"
        raise LimitExceeded(
            f"{message}; send the request without the header, or wait", retry_after_s=LEASE.total_seconds()
        )


def _new_record(
    tenant: TenantId, catalog: CatalogContext, request: KeyedRequest, attempt: Attempt, *, now: datetime
) -> IdempotencyRecord:
    wrapped = catalog.sealer.new_tenant_key(tenant)
    fingerprint = _digest(request.parts)  # sealed: a short secret in the body could be guessed from its digest
    return IdempotencyRecord(  # guard: idempotency-sealed
        id=attempt.record,
        is_operators=isinstance(request.caller, Operator),
        wrapped=wrapped,
        request=catalog.sealer.seal(tenant, wrapped, fingerprint, KIND, attempt.record, _REQUEST),
        attempt=attempt.id,
        leased_until=now + LEASE,
        expires_at=now + RECORD_LIFETIME,
    )


def _check_same_request(
    tenant: TenantId, catalog: CatalogContext, request: KeyedRequest, record: IdempotencyRecord
) -> None:
    try:
        seen = catalog.sealer.open(tenant, record.wrapped, record.request, KIND, record.id, _REQUEST)
    except SecretUnreadable:
        raise AnswerNotKept(
            "the stored response for this Idempotency-Key cannot be decrypted; "
            "fetch the object to see whether the request took effect, then retry with a new key"
        ) from None
    if seen != _digest(request.parts):  # guard: idempotency-of-the-request
        raise IdempotencyKeyReused(
            "this Idempotency-Key belongs to another request of the last 24 hours; use a new key for each request"
        )


def _open_response(tenant: TenantId, catalog: CatalogContext, record: IdempotencyRecord) -> StoredResponse:
    if record.answer is None:
        raise AnswerNotKept(
            "the request was completed, but its replica stopped before the response was stored; "
            "fetch the object to see the result"
        )
    plain = catalog.sealer.open(tenant, record.wrapped, record.answer, KIND, record.id, _RESPONSE)
    status, headers, packed = msgspec.msgpack.decode(plain, type=tuple[int, dict[str, str], bytes | None])
    if packed is None:
        location = headers.get("location")
        message = f"the request was completed (status {status}), but its response was too large to store"
        raise AnswerNotKept(
            f"{message}; fetch {location}" if location else f"{message}; list the objects to find the result"
        )
    return StoredResponse(status=status, headers=headers, body=zlib.decompress(packed))


def _clean_up(tenant: TenantId, at: datetime) -> Job:
    return Job(tenant=tenant, id=KIND, kind=KIND, due_at=at)


def _in_progress() -> RequestInProgress:
    return RequestInProgress(
        "the request with this Idempotency-Key is still running; retry later", retry_after_s=RUNNING_RETRY_S
    )


def _digest(parts: Sequence[bytes]) -> bytes:
    """SHA-256 over the parts and their lengths, so that different lists of parts have different inputs."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()
