"""Records of requests with an `Idempotency-Key`: at rest, at their limits, and after a replica is lost."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.catalog import idempotency
from gateway.catalog.idempotency import KeyedRequest, clean_up, keep, release, reserve
from gateway.catalog.kinds.keys import KEYS
from gateway.domain.http.idempotency import Attempt, StoredResponse
from gateway.domain.identifiers import KeyId
from gateway.domain.refusals import AnswerNotKept, IdempotencyKeyReused, RequestInProgress
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Caller, Operator, Principal
from gateway.errors import Conflict, LimitExceeded
from gateway.store import idempotency as records
from gateway.store import jobs
from gateway.store.encryption import EnvelopeCipher
from tests.integration.catalog.conftest import BY, Changes
from tests.support.keys import new_key

SECRET = "mcpg_live_the-text-of-a-new-key"
ANSWER = StoredResponse(status=201, headers={"location": "/admin/v1/x"}, body=SECRET.encode())


def _request(key: str = "k-1", *, body: bytes = b"{}", caller: Caller | None = None) -> KeyedRequest:
    return KeyedRequest(caller=caller or Operator(), key=key, parts=[b"POST", body])


async def _reserve(changes: Changes, request: KeyedRequest) -> Attempt:
    found = await reserve(changes.tenant.id, changes.catalog, request)
    assert isinstance(found, Attempt)
    return found


async def _done(changes: Changes, key: str = "k-1", answer: StoredResponse = ANSWER) -> KeyedRequest:
    request = _request(key)
    await keep(changes.tenant.id, changes.catalog, await _reserve(changes, request), answer)
    return request


async def _rows(changes: Changes) -> int:
    async with changes.catalog.store.transaction(changes.tenant.id) as db:
        count, _ = await records.usage(changes.tenant.id, db, is_operators=True)
        return count


async def test_nothing_at_rest_can_be_read_or_guessed(changes: Changes) -> None:
    """Ours: neither a new key's text nor a digest of a body with a password is in the database in the clear (TEN-4)."""
    body = b'{"value":"hunter2"}'
    request = _request("secret-name", body=body)
    attempt = await _reserve(changes, request)
    await keep(changes.tenant.id, changes.catalog, attempt, ANSWER)
    async with changes.catalog.store.transaction(changes.tenant.id) as db:
        row = await records.get(changes.tenant.id, db, attempt.record)

    assert row is not None
    assert row.answer is not None
    at_rest = repr(row).encode() + row.answer + row.request + row.wrapped
    for clear in (SECRET.encode(), b"secret-name", b"hunter2", idempotency._digest(request.parts)):  # pyright: ignore[reportPrivateUsage]
        assert clear not in at_rest
        assert clear.hex().encode() not in at_rest
    assert await reserve(changes.tenant.id, changes.catalog, request) == ANSWER
    blind = replace(changes.catalog, sealer=EnvelopeCipher(["another-secret-key-of-the-tests-0123456"]))
    with pytest.raises(AnswerNotKept, match="a new key"):
        await reserve(changes.tenant.id, blind, request)


async def test_a_request_whose_replica_died_runs_again_and_the_slow_one_changes_nothing(changes: Changes) -> None:
    """Ours: a lease that ended is taken over once; the attempt before cannot commit any more (ADM-1)."""
    tenant, catalog, request = changes.tenant.id, changes.catalog, _request()
    slow = await _reserve(changes, request)
    with pytest.raises(RequestInProgress):
        await reserve(tenant, catalog, request)
    async with catalog.store.transaction(tenant) as db:
        await records.lease(tenant, db, slow, until=datetime.now(UTC) - timedelta(seconds=1))
    second = await _reserve(changes, request)
    with pytest.raises(Conflict, match="another replica repeated it"):
        await KEYS.create_with_secret(tenant, catalog, new_key(), by=replace(BY, attempt=slow))
    await release(tenant, catalog, slow)
    await KEYS.create_with_secret(tenant, catalog, new_key(), by=replace(BY, attempt=second))

    assert len(await KEYS.page(tenant, catalog, after=None, limit=9)) == 1
    await release(tenant, catalog, second)
    with pytest.raises(AnswerNotKept, match="replica stopped"):
        await reserve(tenant, catalog, request)
    with pytest.raises(IdempotencyKeyReused):
        await reserve(tenant, catalog, _request(body=b"other"))


async def test_records_are_bounded_and_the_operator_has_room_of_its_own(
    changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a tenant that fills its records keeps the operator from nothing (ISO-3)."""
    monkeypatch.setattr(idempotency, "MAX_RECORDS", 2)
    mine = Principal(
        tenant=changes.tenant.id, slug="acme", key=KeyId("key_1"), subject="s", scopes=frozenset({Scope.ADMIN})
    )
    for number in range(2):
        await _reserve(changes, _request(f"k{number}", caller=replace(mine, key=KeyId(f"key_{number}"))))
    with pytest.raises(LimitExceeded, match="limit 2 per tenant"):
        await reserve(changes.tenant.id, changes.catalog, _request("k3", caller=mine))

    await _reserve(changes, _request("k4"))


@pytest.mark.parametrize("limit", ["MAX_RESPONSE_BYTES", "MAX_RESPONSES_BYTES"])
async def test_an_answer_too_large_to_keep_is_not_done_twice(
    changes: Changes, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the refusal of the repeated request names the place to read (ISO-3)."""
    monkeypatch.setattr(idempotency, limit, 10)
    request = await _done(changes)

    with pytest.raises(AnswerNotKept, match=r"status 201.*too large.*fetch /admin/v1/x"):
        await reserve(changes.tenant.id, changes.catalog, request)


async def test_after_a_day_a_key_is_free_and_nothing_is_left(changes: Changes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: sealed answers do not stay where a tenant never comes back; the round forgets them (ADM-1)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    monkeypatch.setattr(idempotency, "RECORD_LIFETIME", timedelta(0))
    await _done(changes)
    assert await _rows(changes) == 1
    async with catalog.store.unscoped() as db:
        [due] = await jobs.page(db, until=datetime.now(UTC) + timedelta(days=1), limit=9, of_each=9)
    assert (due.kind, due.tenant) == (idempotency.KIND, tenant)
    await clean_up(catalog, due)

    assert await _rows(changes) == 0
    async with catalog.store.unscoped() as db:
        assert await jobs.page(db, until=datetime.now(UTC) + timedelta(days=1), limit=9, of_each=9) == []
    await _done(changes)
    monkeypatch.setattr(idempotency, "RECORD_LIFETIME", timedelta(hours=1))
    assert isinstance(await reserve(tenant, catalog, _request()), Attempt)
    await clean_up(catalog, due)  # another replica has it
    assert await _rows(changes) == 1
