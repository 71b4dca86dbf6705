"""Principal of a credential, and that no response shows why there is none."""

import contextlib
import hashlib
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.domain.tenancy.keys import Key, KeySecret, MintedKey, Scope, digest_key, mint_key
from gateway.domain.tenancy.principals import Operator, Principal
from gateway.errors import BrokenSetting, DatabaseUnavailable, Unauthenticated
from gateway.identity.authenticator import REFUSED, Authenticator
from gateway.identity.key_digests import KeyDigests
from tests.support.ids import new_tenant_id

OPERATOR_KEY = "an operator key with spaces and more than 32 characters"
PEPPERS = (b"new pepper", b"old pepper")
DIGESTS = KeyDigests({"new": PEPPERS[0], "old": PEPPERS[1]})

Found = Mapping[KeyId, tuple[Key, str]]


class Keys:
    """A finder over a dictionary that counts how often it is asked."""

    def __init__(self) -> None:
        self.stored: dict[KeyId, tuple[Key, str]] = {}
        self.asked = 0
        self.last: frozenset[KeyId] = frozenset()
        self.is_away = False

    async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Found:
        self.asked += 1
        self.last = frozenset(wanted)
        if self.is_away:
            raise DatabaseUnavailable("PostgreSQL does not respond")
        return {key: self.stored[key] for key in wanted if key in self.stored}

    def add(
        self,
        minted: MintedKey,
        *,
        tenant: TenantId | None = None,
        pepper: bytes = PEPPERS[0],
        expires_at: datetime | None = None,
        revoked_at: datetime | None = None,
    ) -> Key:
        key = Key(
            tenant=tenant or new_tenant_id(),
            id=minted.id,
            name="a key",
            scopes=frozenset({Scope.MCP}),
            subject="somebody",
            profile=None,
            secret=KeySecret(digest=digest_key(minted.text, pepper)),
            created_at=datetime.now(UTC),
            expires_at=expires_at,
            revoked_at=revoked_at,
            version=1,
        )
        self.stored[minted.id] = (key, "acme")
        return key


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def credentials(keys: Keys) -> Authenticator:
    return Authenticator(keys, digests=DIGESTS, operator_key=OPERATOR_KEY)


async def test_a_stored_key_is_its_principal(keys: Keys, credentials: Authenticator) -> None:
    """Ours: a good key gives tenant, slug, key, subject and scopes."""
    minted = mint_key()
    key = keys.add(minted)

    caller = await credentials.authenticate(f"Bearer {minted.text}")

    assert caller == Principal(
        tenant=key.tenant, slug="acme", key=key.id, subject="somebody", scopes=key.scopes, version=key.version
    )


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_has_no_case(keys: Keys, credentials: Authenticator, scheme: str) -> None:
    """RFC 9110 §11.1: the name of an authentication scheme is case-insensitive."""
    minted = mint_key()
    keys.add(minted)

    assert isinstance(await credentials.authenticate(f"{scheme} {minted.text}"), Principal)


async def test_spellings_of_one_header_are_remembered_once(keys: Keys, credentials: Authenticator) -> None:
    """ISO-3: one key does not fill what is remembered of all tenants' keys with cases and spaces."""
    minted = mint_key()
    keys.add(minted)
    for spaces in range(1, 200):
        for scheme in ("Bearer", "bearer", "bEARER"):
            await credentials.authenticate(f"{scheme}{' ' * spaces}{minted.text}{' ' * (spaces % 7)}")

    assert (keys.asked, credentials.remembered) == (1, 1)


async def test_the_operator_key_is_the_operator(keys: Keys, credentials: Authenticator) -> None:
    """Ours: any string of 32 characters may be the operator key; no database is asked for it."""
    assert isinstance(await credentials.authenticate(f"Bearer {OPERATOR_KEY}"), Operator)
    assert keys.asked == 0


async def test_an_operator_key_beyond_ascii_works(keys: Keys) -> None:
    """Ours: servers hand headers on as latin-1; the key is compared as the bytes that were sent."""
    secret = "ключ оператора достаточно длинный для нас"
    credentials = Authenticator(keys, digests=DIGESTS, operator_key=secret)

    assert isinstance(await credentials.authenticate(f"Bearer {secret}".encode().decode("latin-1")), Operator)


async def test_several_operator_keys_are_accepted_and_named(keys: Keys) -> None:
    """Ours: a rotation has two keys; each use has the name of its key, which is stable and not part of it (OPR-2)."""
    new, old = "n" * 32, "o" * 40
    file = [f"{new},{old}"]
    configured = ConfiguredSecret(file[0], name="GATEWAY_OPERATOR_KEY", read=lambda: file[0])
    credentials = Authenticator(keys, digests=DIGESTS, operator_key=configured)
    names = credentials.operator_keys.names

    for key, name in zip((new, old), names, strict=True):
        caller = await credentials.authenticate(f"Bearer {key}")
        assert caller == Operator()
        assert isinstance(caller, Operator)
        assert caller.key == name
    assert names == Authenticator(keys, digests=DIGESTS, operator_key=f"{new},{old}").operator_keys.names
    assert credentials.operator_keys.uses == dict.fromkeys(names, 1)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(f"Bearer {new},{old}")

    file[0] = f"{new},short"
    assert (credentials.operator_keys.reread(), credentials.is_operator(f"Bearer {old}")) == (False, True)
    file[0] = new
    assert (credentials.operator_keys.reread(), credentials.is_operator(f"Bearer {old}")) == (True, False)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(f"Bearer {old}")


@pytest.mark.parametrize("operator_key", ["", "x" * 31, f"{'x' * 32},", f"{'x' * 32},{'y' * 31}"])
def test_a_short_operator_key_is_refused_at_the_start(keys: Keys, operator_key: str) -> None:
    """Ours: the gateway does not start with an operator key that can be guessed, least of all an empty one."""
    with pytest.raises(BrokenSetting):
        Authenticator(keys, digests=DIGESTS, operator_key=operator_key)


@pytest.mark.parametrize("peppers", [{}, {"a": b""}, {"a": b"good", "b": b""}])
def test_keys_are_never_checked_without_a_pepper(peppers: dict[str, bytes]) -> None:
    """Ours: a digest without a pepper could be computed by a reader of the database."""
    with pytest.raises(BrokenSetting):
        KeyDigests(peppers)


def _another(number: int) -> KeySecret:
    return KeySecret(digest=digest_key(mint_key().text, PEPPERS[0]), number=number)


def rotate(
    keys: Keys, overlap: timedelta, *, old_pepper: bytes = PEPPERS[0], old_name: str | None = None
) -> tuple[MintedKey, MintedKey]:
    """Add a key that was rotated; return its old and its new text."""
    old = mint_key()
    new, key = mint_key(key=old.id), keys.add(old, pepper=old_pepper)
    former = replace(key.secret, ends_at=datetime.now(UTC) + overlap, pepper=old_name)
    secret = KeySecret(digest=digest_key(new.text, PEPPERS[0]), number=2, pepper="new")
    keys.stored[old.id] = replace(key, secret=secret, former=former, version=2), "acme"
    return old, new


def _bad_headers() -> list[str | None]:
    good = mint_key().text
    return [
        None,
        "",
        "Bearer",
        "Bearer ",
        good,
        f"Basic {good}",
        f"Bearer {good}",
        f"Bearer {good} {good}",
        f"Bearer {good}, Bearer {good}",
        f"Bearer\t{good}",
        f"Bearer {OPERATOR_KEY[:-1]}",
        f"Bearer {OPERATOR_KEY}x",
        "Bearer " + "x" * 100_000,
        "Bearer \u20ac",
        "Bearer \x00",
    ]


@pytest.mark.parametrize("header", _bad_headers())
async def test_every_refusal_reads_the_same(credentials: Authenticator, header: str | None) -> None:
    """Ours: no, malformed, unknown: one code and one message (TEN-2)."""
    with pytest.raises(Unauthenticated) as refused:
        await credentials.authenticate(header)

    assert refused.value.message == REFUSED


async def test_an_unusable_key_is_refused_like_an_unknown_one(keys: Keys, credentials: Authenticator) -> None:
    """Ours: expired, revoked and wrong keys get equal responses (TEN-2)."""
    past = datetime.now(UTC) - timedelta(seconds=1)
    expired, revoked, other = mint_key(), mint_key(), mint_key()
    keys.add(expired, expires_at=past)
    keys.add(revoked, revoked_at=past)
    keys.add(other, pepper=b"a pepper we do not have")

    for minted in (expired, revoked, other, mint_key()):
        with pytest.raises(Unauthenticated) as refused:
            await credentials.authenticate(f"Bearer {minted.text}")
        assert refused.value.message == REFUSED


async def test_a_key_digested_with_an_older_pepper_still_works(keys: Keys, credentials: Authenticator) -> None:
    """Ours: secret keys are rotated without breaking the API keys made before."""
    minted = mint_key()
    keys.add(minted, pepper=PEPPERS[1])

    assert isinstance(await credentials.authenticate(f"Bearer {minted.text}"), Principal)


async def test_a_former_secret_works_until_its_end(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: during a rotation both texts are accepted; the old one's cached result ends with it (IDN-5, TEN-2)."""
    _pass_time(monkeypatch, 0)
    credentials = Authenticator(keys, digests=DIGESTS, operator_key=OPERATOR_KEY)
    old, new = rotate(keys, timedelta(seconds=1), old_pepper=PEPPERS[1])

    first, second = [await credentials.authenticate(f"Bearer {one.text}") for one in (old, new)]
    assert isinstance(first, Principal)
    assert isinstance(second, Principal)
    assert (first.version, second.version) == (1, 2)
    assert await credentials.still_valid(first)
    row, slug = keys.stored[old.id]
    assert row.former is not None
    keys.stored[old.id] = replace(row, former=replace(row.former, ends_at=datetime.now(UTC))), slug
    assert isinstance(await credentials.authenticate(f"Bearer {old.text}"), Principal)  # cached for its last second

    _pass_time(monkeypatch, 1.1)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(f"Bearer {old.text}")
    assert await credentials.authenticate(f"Bearer {new.text}") is second
    assert (await credentials.still_valid(first), await credentials.still_valid(second)) == (False, True)


async def test_a_former_secret_that_ended_early_is_taken_along_as_such(
    keys: Keys, credentials: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a result in use that is renewed together with another one ends with its secret (IDN-5, TEN-2)."""
    _pass_time(monkeypatch, 0)
    old, new = rotate(keys, timedelta(hours=1))
    for _ in range(2):
        await credentials.authenticate(f"Bearer {old.text}")
    row, slug = keys.stored[old.id]
    keys.stored[old.id] = replace(row, former=None), slug
    _pass_time(monkeypatch, 2)
    await _come(keys, credentials)

    with pytest.raises(Unauthenticated):
        await credentials.authenticate(f"Bearer {old.text}")
    assert isinstance(await credentials.authenticate(f"Bearer {new.text}"), Principal)


async def test_a_secret_of_two_rotations_ago_is_refused(keys: Keys, credentials: Authenticator) -> None:
    """Ours: a key has two secrets at most (IDN-5)."""
    oldest, old = rotate(keys, timedelta(hours=1))
    newest = mint_key(key=old.id)
    row, slug = keys.stored[old.id]
    secret = KeySecret(digest=digest_key(newest.text, PEPPERS[0]), number=3)
    keys.stored[old.id] = replace(row, secret=secret, former=None), slug

    for ended in (oldest, old):
        with pytest.raises(Unauthenticated):
            await credentials.authenticate(f"Bearer {ended.text}")
    assert isinstance(await credentials.authenticate(f"Bearer {newest.text}"), Principal)


async def test_a_row_of_another_key_is_not_believed(keys: Keys, credentials: Authenticator) -> None:
    """Ours: whatever the finder hands out, it must be the key that was shown."""
    shown, stored = mint_key(), mint_key()
    keys.add(stored)
    row, slug = keys.stored[stored.id]
    keys.stored[shown.id] = (replace(row, secret=KeySecret(digest=digest_key(shown.text, PEPPERS[0]))), slug)

    with pytest.raises(Unauthenticated):
        await credentials.authenticate(f"Bearer {shown.text}")


async def test_a_good_answer_is_remembered(keys: Keys, credentials: Authenticator) -> None:
    """Ours: the database is not asked for every request."""
    minted = mint_key()
    keys.add(minted)

    first = await credentials.authenticate(f"Bearer {minted.text}")

    assert await credentials.authenticate(f"Bearer {minted.text}") is first
    assert keys.asked == 1


async def test_a_bad_answer_is_not_remembered(keys: Keys, credentials: Authenticator) -> None:
    """Ours: a key works as soon as it exists."""
    minted = mint_key()
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(f"Bearer {minted.text}")
    keys.add(minted)

    assert isinstance(await credentials.authenticate(f"Bearer {minted.text}"), Principal)


async def test_a_remembered_answer_ends(
    keys: Keys, credentials: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a revoked key is refused within five seconds, even when its event is lost (TEN-2)."""
    minted = mint_key()
    keys.add(minted)
    await credentials.authenticate(f"Bearer {minted.text}")
    keys.stored.clear()
    await credentials.authenticate(f"Bearer {minted.text}")

    _pass_time(monkeypatch, 3.1)

    with pytest.raises(Unauthenticated):
        await credentials.authenticate(f"Bearer {minted.text}")


async def test_an_answer_that_took_long_ends_as_soon(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the answer of a slow database about a key may be out of date when it arrives (TEN-2)."""
    minted = mint_key()
    keys.add(minted)

    class Slow:
        async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Found:
            found = await keys.find(wanted)
            _pass_time(monkeypatch, 3.1)
            return found

    slow = Authenticator(Slow(), digests=DIGESTS, operator_key=OPERATOR_KEY)
    await slow.authenticate(f"Bearer {minted.text}")
    keys.stored.clear()

    with pytest.raises(Unauthenticated):
        await slow.authenticate(f"Bearer {minted.text}")


async def test_an_answer_is_not_remembered_beyond_the_keys_end(
    keys: Keys, credentials: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a key that expires in two seconds is not good for three."""
    minted = mint_key()
    keys.add(minted, expires_at=datetime.now(UTC) + timedelta(seconds=2))
    await credentials.authenticate(f"Bearer {minted.text}")
    keys.stored.clear()

    _pass_time(monkeypatch, 2.1)

    with pytest.raises(Unauthenticated):
        await credentials.authenticate(f"Bearer {minted.text}")


async def test_a_forgotten_key_is_looked_up_again(keys: Keys, credentials: Authenticator) -> None:
    """Ours: the event of a change makes it count at once."""
    first, second = mint_key(), mint_key()
    tenant = new_tenant_id()
    keys.add(first, tenant=tenant)
    keys.add(second)
    forgets: list[Callable[[], None]] = [
        lambda: credentials.forget(first.id),
        lambda: credentials.forget_tenant(tenant),
    ]
    for forget in forgets:
        await credentials.authenticate(f"Bearer {first.text}")
        await credentials.authenticate(f"Bearer {second.text}")
        asked = keys.asked
        forget()
        await credentials.authenticate(f"Bearer {first.text}")
        await credentials.authenticate(f"Bearer {second.text}")
        assert keys.asked == asked + 1

    credentials.forget_all()
    await credentials.authenticate(f"Bearer {second.text}")
    assert keys.asked == 5


async def test_a_lookup_that_is_dropped_while_it_runs_is_not_remembered(keys: Keys) -> None:
    """Ours: a revocation that overtakes the reading of its key is not undone by it."""
    minted = mint_key()
    keys.add(minted)

    class Overtaken:
        async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Found:
            found = await keys.find(wanted)
            overtaken.forget(minted.id)
            return found

    overtaken = Authenticator(Overtaken(), digests=DIGESTS, operator_key=OPERATOR_KEY)
    await overtaken.authenticate(f"Bearer {minted.text}")
    await overtaken.authenticate(f"Bearer {minted.text}")

    assert keys.asked == 2


async def test_a_lookup_from_before_a_change_is_not_shared_after_it(keys: Keys) -> None:
    """Ours: a revoked key is refused, also while an older reading of it is still under way (TEN-2)."""
    minted, go_on = mint_key(), anyio.Event()
    keys.add(minted)

    class Slow:
        async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Found:
            found = await keys.find(wanted)
            if keys.asked == 1:
                await go_on.wait()
            return found

    slow = Authenticator(Slow(), digests=DIGESTS, operator_key=OPERATOR_KEY)
    async with anyio.create_task_group() as group:
        group.start_soon(slow.authenticate, f"Bearer {minted.text}")
        await anyio.wait_all_tasks_blocked()
        keys.stored.clear()
        slow.forget(minted.id)
        with anyio.fail_after(10), pytest.raises(Unauthenticated):
            await slow.authenticate(f"Bearer {minted.text}")
        go_on.set()


async def test_concurrent_requests_with_one_key_are_one_query(keys: Keys) -> None:
    """Ours: a hundred first requests of one key are one lookup (TEN-3)."""
    minted, go_on = mint_key(), anyio.Event()
    keys.add(minted)

    class Slow:
        async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Found:
            found = await keys.find(wanted)
            await go_on.wait()
            return found

    slow = Authenticator(Slow(), digests=DIGESTS, operator_key=OPERATOR_KEY)
    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(slow.authenticate, f"Bearer {minted.text}")
        await anyio.wait_all_tasks_blocked()
        go_on.set()

    assert keys.asked == 1


async def _busy(keys: Keys, credentials: Authenticator, count: int) -> list[MintedKey]:
    """So many good keys that have come twice."""
    busy = [mint_key() for _ in range(count)]
    for minted in busy:
        keys.add(minted)
        for _ in range(2):
            await credentials.authenticate(f"Bearer {minted.text}")
    return busy


async def _come(keys: Keys, credentials: Authenticator) -> None:
    """A new caller comes, so that there is a lookup."""
    new = mint_key()
    keys.add(new)
    await credentials.authenticate(f"Bearer {new.text}")


async def test_keys_in_use_are_looked_up_together(
    keys: Keys, credentials: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a hundred busy tenants are one query every few seconds; unused ones are not queried (TEN-3)."""
    _pass_time(monkeypatch, 0)
    busy = await _busy(keys, credentials, 5)
    idle = mint_key()
    keys.add(idle)
    await credentials.authenticate(f"Bearer {idle.text}")
    callers = [await credentials.authenticate(f"Bearer {minted.text}") for minted in busy]
    _pass_time(monkeypatch, 2)

    await _come(keys, credentials)
    assert keys.last >= {minted.id for minted in busy}
    assert idle.id not in keys.last
    _pass_time(monkeypatch, 1.2)  # what was read first would have ended

    asked = keys.asked
    for minted, caller in zip(busy, callers, strict=True):
        assert await credentials.authenticate(f"Bearer {minted.text}") is caller
    assert keys.asked == asked
    await credentials.authenticate(f"Bearer {idle.text}")
    assert keys.asked == asked + 1
    _pass_time(monkeypatch, 3.1)  # what was read together ends together
    for minted, caller in zip(busy, callers, strict=True):
        assert await credentials.authenticate(f"Bearer {minted.text}") is caller
    assert keys.asked == asked + 2


async def test_keys_looked_up_along_are_believed_like_the_queried_one(
    keys: Keys, credentials: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: revoked, ended, changed and replaced keys have this state from the lookup on that shows it (TEN-2)."""
    _pass_time(monkeypatch, 0)
    busy = await _busy(keys, credentials, 5)
    gone, revoked, ending, other, changed = busy
    past = datetime.now(UTC) - timedelta(seconds=1)
    rows = {minted.id: keys.stored[minted.id][0] for minted in busy}
    del keys.stored[gone.id]
    keys.stored[revoked.id] = (replace(rows[revoked.id], revoked_at=past), "acme")
    keys.stored[ending.id] = (replace(rows[ending.id], expires_at=past), "acme")
    keys.stored[other.id] = (replace(rows[other.id], secret=_another(2)), "acme")
    keys.stored[changed.id] = (replace(rows[changed.id], scopes=frozenset({Scope.AUDIT}), version=2), "globex")
    _pass_time(monkeypatch, 2)

    await _come(keys, credentials)

    for minted in (gone, revoked, ending, other):
        with pytest.raises(Unauthenticated):
            await credentials.authenticate(f"Bearer {minted.text}")
    caller = await credentials.authenticate(f"Bearer {changed.text}")
    assert isinstance(caller, Principal)
    assert (caller.slug, caller.scopes) == ("globex", frozenset({Scope.AUDIT}))


async def test_keys_looked_up_along_expire_with_the_queried_one(
    keys: Keys, credentials: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: an answer counts from when it was asked for, and no longer than the key itself (TEN-2)."""
    _pass_time(monkeypatch, 0)
    lasting, short = await _busy(keys, credentials, 2)
    row, slug = keys.stored[short.id]
    keys.stored[short.id] = (replace(row, expires_at=datetime.now(UTC) + timedelta(seconds=1)), slug)
    _pass_time(monkeypatch, 2)
    await _come(keys, credentials)
    keys.stored.clear()

    _pass_time(monkeypatch, 1.1)
    assert isinstance(await credentials.authenticate(f"Bearer {lasting.text}"), Principal)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(f"Bearer {short.text}")
    _pass_time(monkeypatch, 2)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(f"Bearer {lasting.text}")


@pytest.mark.parametrize("comes_meanwhile", [False, True])
async def test_keys_dropped_during_a_shared_lookup_are_not_remembered(
    keys: Keys, monkeypatch: pytest.MonkeyPatch, comes_meanwhile: bool
) -> None:
    """Ours: a change that overtakes the reading of its key is not undone by it, for any caller (TEN-2)."""
    under_way, go_on = anyio.Event(), anyio.Event()
    go_on.set()

    class Slow:
        async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Found:
            found = await keys.find(wanted)
            if len(wanted) > 1:
                under_way.set()
                await go_on.wait()
            return found

    slow = Authenticator(Slow(), digests=DIGESTS, operator_key=OPERATOR_KEY)
    _pass_time(monkeypatch, 0)
    (busy,) = await _busy(keys, slow, 1)
    row, slug = keys.stored[busy.id]
    _pass_time(monkeypatch, 2)
    go_on = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(_come, keys, slow)
        await under_way.wait()
        assert busy.id in keys.last
        keys.stored[busy.id] = (replace(row, scopes=frozenset({Scope.AUDIT}), version=2), slug)
        slow.forget(busy.id)
        if comes_meanwhile:
            await slow.authenticate(f"Bearer {busy.text}")
        go_on.set()

    caller = await slow.authenticate(f"Bearer {busy.text}")
    assert isinstance(caller, Principal)
    assert caller.scopes == {Scope.AUDIT}


async def test_a_failed_lookup_fails_no_other_key(
    keys: Keys, credentials: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: without an answer every caller continues as before, and looks up its own key when it is due (SRV-4)."""
    _pass_time(monkeypatch, 0)
    (busy,) = await _busy(keys, credentials, 1)
    _pass_time(monkeypatch, 2)
    keys.is_away = True
    with pytest.raises(DatabaseUnavailable):
        await _come(keys, credentials)
    keys.is_away = False

    asked = keys.asked
    await credentials.authenticate(f"Bearer {busy.text}")
    assert keys.asked == asked
    _pass_time(monkeypatch, 1.1)
    await credentials.authenticate(f"Bearer {busy.text}")
    assert keys.asked == asked + 1


async def test_a_lost_database_is_no_refusal(keys: Keys, credentials: Authenticator) -> None:
    """Ours: the validity of a key is not guessed; remembered ones continue."""
    known, other = mint_key(), mint_key()
    keys.add(known)
    await credentials.authenticate(f"Bearer {known.text}")
    keys.is_away = True

    await credentials.authenticate(f"Bearer {known.text}")
    with pytest.raises(DatabaseUnavailable):
        await credentials.authenticate(f"Bearer {other.text}")


async def test_a_known_key_works_for_a_minute_without_a_database(
    keys: Keys, credentials: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a key that was valid when the database went away still is, until it ends or a minute is over (SRV-4)."""
    known, expiring = mint_key(), mint_key()
    keys.add(known)
    keys.add(expiring, expires_at=datetime.now(UTC) + timedelta(seconds=20))
    for minted in (known, expiring):
        await credentials.authenticate(f"Bearer {minted.text}")
    keys.is_away = True

    _pass_time(monkeypatch, 30)
    assert isinstance(await credentials.authenticate(f"Bearer {known.text}"), Principal)
    with pytest.raises(DatabaseUnavailable):
        await credentials.authenticate(f"Bearer {expiring.text}")
    _pass_time(monkeypatch, 31)
    with pytest.raises(DatabaseUnavailable):
        await credentials.authenticate(f"Bearer {known.text}")


async def test_the_fallback_of_a_key_ends_with_the_key(keys: Keys, credentials: Authenticator) -> None:
    """Ours: after an event about the key, no older state is believed, database or not (TEN-2)."""
    minted = mint_key()
    key = keys.add(minted)
    forgets: list[Callable[[], None]] = [
        lambda: credentials.forget(key.id),
        lambda: credentials.forget_tenant(key.tenant),
    ]
    for forget in forgets:
        keys.is_away = False
        await credentials.authenticate(f"Bearer {minted.text}")
        keys.is_away = True
        forget()
        with pytest.raises(DatabaseUnavailable):
            await credentials.authenticate(f"Bearer {minted.text}")


async def test_an_ended_key_differs_from_a_changed_one(keys: Keys, credentials: Authenticator) -> None:
    """Ours: sessions end with their key, not with a change of it (RES-6)."""
    minted = mint_key()
    key = keys.add(minted)
    assert not await credentials.has_ended(key.id)
    keys.stored[key.id] = (replace(key, version=2), "acme")
    assert not await credentials.has_ended(key.id)
    keys.stored[key.id] = (replace(key, expires_at=datetime.now(UTC)), "acme")
    assert await credentials.has_ended(key.id)
    keys.stored.clear()
    assert await credentials.has_ended(key.id)


@pytest.mark.parametrize(
    ("changes", "is_valid"),
    [
        ({}, True),
        ({"revoked_at": datetime.now(UTC) - timedelta(seconds=1)}, False),
        ({"expires_at": datetime.now(UTC) - timedelta(seconds=1)}, False),
        ({"expires_at": datetime.now(UTC) + timedelta(hours=1)}, True),
        ({"scopes": frozenset({Scope.AUDIT}), "version": 2}, False),
        ({"profile": "other", "version": 2}, False),
        ({"secret": KeySecret(digest=b"another secret", number=2), "version": 2}, False),
        ({"tenant": new_tenant_id()}, False),
    ],
)
async def test_a_remembered_key_is_valid_until_it_changes(
    keys: Keys, credentials: Authenticator, changes: dict[str, Any], is_valid: bool
) -> None:
    """Ours: a remembered lookup does not count, and a key that is no longer valid is not remembered (TEN-2)."""
    minted = mint_key()
    key = keys.add(minted)
    caller = await credentials.authenticate(f"Bearer {minted.text}")
    assert isinstance(caller, Principal)
    keys.stored[key.id] = (replace(key, **changes), "acme")

    assert await credentials.still_valid(caller) is is_valid
    asked = keys.asked
    with contextlib.suppress(Unauthenticated):
        await credentials.authenticate(f"Bearer {minted.text}")
    assert keys.asked == asked + (0 if is_valid else 1)


async def test_a_deleted_key_is_valid_for_no_one(keys: Keys, credentials: Authenticator) -> None:
    """Ours: deleted is ended; a database that is away is no answer (TEN-2)."""
    minted = mint_key()
    keys.add(minted)
    caller = await credentials.authenticate(f"Bearer {minted.text}")
    assert isinstance(caller, Principal)
    keys.is_away = True
    with pytest.raises(DatabaseUnavailable):
        await credentials.still_valid(caller)
    keys.is_away = False
    keys.stored.clear()

    assert not await credentials.still_valid(caller)


async def test_no_credential_is_kept_in_memory(keys: Keys, credentials: Authenticator) -> None:
    """Ours: a remembered key is found by a keyed digest, never by the key or a digest that others could compute."""
    minted = mint_key()
    keys.add(minted)
    header = f"Bearer {minted.text}"
    await credentials.authenticate(header)

    kept = repr(vars(credentials))

    assert minted.text not in kept
    assert minted.text.split("_")[3][:-8] not in kept
    assert repr(hashlib.blake2b(header.encode(), digest_size=16).digest()) not in kept


async def test_remembered_keys_are_bounded(
    keys: Keys, credentials: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: many keys do not fill the memory; the oldest answers go first."""
    monkeypatch.setattr("gateway.identity.authenticator.MAX_REMEMBERED", 3)
    minted = [mint_key() for _ in range(5)]
    for key in minted:
        keys.add(key)
        await credentials.authenticate(f"Bearer {key.text}")

    await credentials.authenticate(f"Bearer {minted[-1].text}")
    assert keys.asked == 5
    await credentials.authenticate(f"Bearer {minted[0].text}")
    assert keys.asked == 6


def test_a_digest_needs_text_and_pepper() -> None:
    """Ours: the stored digest reveals nothing without the pepper."""
    assert digest_key("a", b"p") != digest_key("b", b"p") != digest_key("b", b"q")
    assert len(digest_key("a", b"p")) == 32


def _pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Stop the clock that the cache reads, this much later."""
    now = time.monotonic() + seconds
    monkeypatch.setattr("gateway.identity.authenticator.time.monotonic", lambda: now)
