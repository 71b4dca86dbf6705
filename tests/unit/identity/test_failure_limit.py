"""The limit on failed authentications, and lookups in batches beyond it."""

from collections.abc import Collection, Mapping

import anyio
import pytest
import structlog.testing

from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.keys import Key, mint_key
from gateway.domain.tenancy.principals import Operator, Principal
from gateway.errors import DatabaseUnavailable, LimitExceeded, Unauthenticated
from gateway.identity.authenticator import Authenticator
from gateway.identity.failure_limit import BatchedLookups, FailureLimit
from tests.unit.identity.test_authenticator import DIGESTS, OPERATOR_KEY, Keys

Found = Mapping[KeyId, tuple[Key, str]]
HERE, THERE = "192.0.2.1", "198.51.100.1"
SLOW = 1e-6
"""A rate at which no test waits for a token."""


def _limited(keys: Keys, *, failures: int = 1) -> Authenticator:
    limit = FailureLimit(SLOW, burst=failures, interval_s=0.05)
    return Authenticator(keys, digests=DIGESTS, operator_key=OPERATOR_KEY, failures=limit)


async def _fail(credentials: Authenticator, *addresses: str) -> list[type[Exception]]:
    """The refusals of a wrong key from each address."""
    found: list[type[Exception]] = []
    for address in addresses:
        try:
            await credentials.authenticate(f"Bearer {mint_key().text}", address=address)
        except (Unauthenticated, LimitExceeded) as error:
            found.append(type(error))
    return found


async def test_an_address_beyond_the_failure_limit_gets_a_retry_hint() -> None:
    """Ours: 429 with the time to wait, for this address alone (ISO-6)."""
    credentials = _limited(Keys(), failures=2)

    assert await _fail(credentials, HERE, HERE, HERE, THERE) == [
        Unauthenticated,
        Unauthenticated,
        LimitExceeded,
        Unauthenticated,
    ]
    with pytest.raises(LimitExceeded, match=r"limit 1e-06 per second for each replica") as caught:
        await credentials.authenticate(None, address=HERE)
    assert caught.value.retry_after_s is not None
    assert caught.value.retry_after_s >= 1


async def test_a_valid_key_is_admitted_from_an_address_beyond_its_limit() -> None:
    """Ours: wrong keys from an address lock out no valid one, known here or not (ISO-6)."""
    keys = Keys()
    known, fresh = mint_key(), mint_key()
    keys.add(known)
    keys.add(fresh)
    credentials = _limited(keys)
    await credentials.authenticate(f"Bearer {known.text}", address=HERE)
    await _fail(credentials, HERE, HERE)

    for minted in (known, fresh):
        caller = await credentials.authenticate(f"Bearer {minted.text}", address=HERE)
        assert isinstance(caller, Principal)
        assert caller.key == minted.id
    assert isinstance(await credentials.authenticate(f"Bearer {OPERATOR_KEY}", address=HERE), Operator)


async def test_wrong_keys_beyond_the_limit_are_looked_up_together() -> None:
    """Ours: a flood of wrong keys costs one query in an interval, not one each (ISO-6)."""
    keys = Keys()
    credentials = _limited(keys)
    await _fail(credentials, HERE)
    asked = keys.asked
    async with anyio.create_task_group() as group:
        for _ in range(200):
            group.start_soon(_fail, credentials, HERE)

    assert keys.asked - asked == 1
    assert len(keys.last) == 200


async def test_a_key_that_was_valid_here_does_not_wait_for_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: clients that are at work notice nothing of a flood from their address (ISO-6)."""
    monkeypatch.setattr("gateway.identity.authenticator.REMEMBERED_S", 0.0)  # it is looked up each time
    keys = Keys()
    minted = mint_key()
    keys.add(minted)
    limit = FailureLimit(SLOW, burst=1, interval_s=3600)
    credentials = Authenticator(keys, digests=DIGESTS, operator_key=OPERATOR_KEY, failures=limit)
    await credentials.authenticate(f"Bearer {minted.text}", address=HERE)
    await _fail(credentials, HERE)

    with anyio.fail_after(30):
        await credentials.authenticate(f"Bearer {minted.text}", address=HERE)


async def test_a_key_that_has_ended_waits_like_a_wrong_one() -> None:
    """Ours: having been valid once is no way around the batches (ISO-6)."""
    keys = Keys()
    minted = mint_key()
    keys.add(minted)
    credentials = _limited(keys)
    await credentials.authenticate(f"Bearer {minted.text}", address=HERE)
    del keys.stored[minted.id]
    credentials.forget(minted.id)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(f"Bearer {minted.text}", address=HERE)
    with pytest.raises(LimitExceeded):
        await credentials.authenticate(f"Bearer {minted.text}", address=HERE)


async def test_the_failures_of_all_addresses_have_a_limit_together() -> None:
    """Ours: many addresses do not multiply the queries (ISO-6)."""
    keys = Keys()
    credentials = _limited(keys, failures=2)
    await _fail(credentials, *(f"192.0.2.{number}" for number in range(20)))
    asked = keys.asked
    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(_fail, credentials, f"203.0.113.{number}")

    assert keys.asked - asked == 1


async def test_an_address_beyond_its_limit_is_logged_once() -> None:
    """Ours: a flood does not fill the log (ISO-6)."""
    limit = FailureLimit(SLOW, burst=1)
    with structlog.testing.capture_logs() as lines:
        for _ in range(1000):
            limit.count(HERE)

    assert [(line["event"], line["client"]) for line in lines] == [("authentication_failures_limited", HERE)]


async def _nothing(_: Collection[KeyId]) -> Found:
    return {}


async def test_a_batch_is_bounded_for_each_address_and_in_all() -> None:
    """Ours: pending lookups take bounded memory, and one address not all of it (ISO-6)."""
    lookups = BatchedLookups(_nothing, interval_s=0.05, limit=5, max_each=3)
    refused: list[str] = []

    async def find(address: str) -> None:
        try:
            await lookups.find(mint_key().id, address)
        except LimitExceeded:
            refused.append(address)

    async with anyio.create_task_group() as group:
        for address in (*[HERE] * 4, *[THERE] * 3):
            group.start_soon(find, address)

    assert sorted(refused) == sorted([HERE, THERE])


async def test_a_cancelled_lookup_is_made_by_the_next_caller() -> None:
    """Ours: a client that disconnects cancels no other client's look-up."""
    asked: list[Collection[KeyId]] = []

    async def find(wanted: Collection[KeyId]) -> Found:
        asked.append(set(wanted))
        return {}

    lookups, first, second = BatchedLookups(find, interval_s=1), mint_key().id, mint_key().id
    async with anyio.create_task_group() as group:
        leaving = anyio.CancelScope()

        async def leave() -> None:
            with leaving:
                await lookups.find(first, HERE)

        group.start_soon(leave)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(lookups.find, second, HERE)
        await anyio.wait_all_tasks_blocked()
        leaving.cancel()

    assert asked == [{first, second}]


async def test_a_lookup_that_fails_fails_for_all_and_the_next_one_is_made() -> None:
    """Ours: a database that is away is not remembered."""
    failures = [DatabaseUnavailable("PostgreSQL does not respond")]

    async def find(_: Collection[KeyId]) -> Found:
        if failures:
            raise failures.pop()
        return {}

    lookups = BatchedLookups(find, interval_s=0)
    with pytest.raises(DatabaseUnavailable):
        await lookups.find(mint_key().id, HERE)
    assert await lookups.find(mint_key().id, HERE) is None
