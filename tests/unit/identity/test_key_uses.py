"""Uses of keys: noted at lookups, stored later; digests follow the current secret key."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.keys import Key, KeyUse, digest_key, mint_key
from gateway.errors import DatabaseUnavailable
from gateway.identity.authenticator import Authenticator
from gateway.identity.key_digests import KeyDigests
from gateway.identity.key_uses import KeyUseLog
from tests.support.ids import new_tenant_id
from tests.unit.identity.test_authenticator import OPERATOR_KEY, PEPPERS, Keys, rotate

HOUR = timedelta(hours=1)


class Uses:
    """A store of uses that may be away."""

    def __init__(self) -> None:
        self.saved: list[tuple[TenantId, KeyUse]] = []
        self.is_away = False
        self.log = KeyUseLog(self.save)
        self.digests = KeyDigests({"new": PEPPERS[0], "old": PEPPERS[1]}, self.log.note)

    async def save(self, tenant: TenantId, uses: Sequence[KeyUse]) -> None:
        if self.is_away:
            raise DatabaseUnavailable("away")
        self.saved += [(tenant, use) for use in uses]


@pytest.fixture
def uses() -> Uses:
    return Uses()


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def credentials(keys: Keys, uses: Uses) -> Authenticator:
    return Authenticator(keys, digests=uses.digests, operator_key=OPERATOR_KEY)


def _marked(key: Key, keys: Keys, pepper: str | None) -> Key:
    marked = replace(key, secret=replace(key.secret, pepper=pepper))
    keys.stored[key.id] = marked, "acme"
    return marked


async def test_a_use_is_stored_once_an_hour_and_not_by_the_call(
    keys: Keys, uses: Uses, credentials: Authenticator
) -> None:
    """Ours: the last use is coarse, so that a busy key costs one write an hour (IDN-5)."""
    minted = mint_key()
    key = _marked(keys.add(minted), keys, "new")
    for _ in range(3):
        await credentials.authenticate(f"Bearer {minted.text}")
        credentials.forget(key.id)
    assert uses.saved == []

    await uses.log.store()
    [(tenant, use)] = uses.saved
    assert (tenant, use.key, use.renewed) == (key.tenant, key.id, None)
    assert timedelta() <= datetime.now(UTC) - use.hour <= HOUR
    keys.stored[key.id] = replace(key, last_used_at=use.hour), "acme"
    await credentials.authenticate(f"Bearer {minted.text}")
    await uses.log.store()
    assert len(uses.saved) == 1


async def test_uses_wait_while_the_database_is_away(keys: Keys, uses: Uses, credentials: Authenticator) -> None:
    """Ours: a database that is away for a minute loses no use (IDN-5, SRV-4)."""
    for tenant in (new_tenant_id(), new_tenant_id()):
        minted = mint_key()
        keys.add(minted, tenant=tenant)
        await credentials.authenticate(f"Bearer {minted.text}")
    uses.is_away = True
    await uses.log.store()
    uses.is_away = False
    await uses.log.store()
    assert len({tenant for tenant, _ in uses.saved}) == 2
    await uses.log.store()
    assert len(uses.saved) == 2


@pytest.mark.parametrize("number", [0, 1])
async def test_a_digest_without_a_name_gets_it_at_the_next_use(
    keys: Keys, uses: Uses, credentials: Authenticator, number: int
) -> None:
    """Ours: digests of earlier releases do not name their secret key, until they are used (IDN-5)."""
    minted = mint_key()
    key = keys.add(minted, pepper=PEPPERS[number])
    await credentials.authenticate(f"Bearer {minted.text}")
    await uses.log.store()
    [(_, use)] = uses.saved
    assert use.renewed == replace(key.secret, pepper=("new", "old")[number])


async def test_a_digest_moves_to_the_current_secret_key_once_all_replicas_have_it(
    keys: Keys, uses: Uses, credentials: Authenticator
) -> None:
    """Ours: a used key needs the old secret key no longer; before the rotation no digest is replaced (IDN-5)."""
    old, new = rotate(keys, HOUR, old_pepper=PEPPERS[1], old_name="old")
    for minted in (old, new):
        await credentials.authenticate(f"Bearer {minted.text}")
    await uses.log.store()
    assert [use.renewed for _, use in uses.saved] == [None, None]

    uses.saved.clear()
    uses.digests.replaces_older = True
    credentials.forget(old.id)
    await credentials.authenticate(f"Bearer {old.text}")
    await uses.log.store()
    [(_, use)] = uses.saved
    former = keys.stored[old.id][0].former
    assert former is not None
    assert use.secret == former
    assert use.renewed == replace(former, digest=digest_key(old.text, PEPPERS[0]), pepper="new")


async def test_an_unknown_or_wrong_key_is_no_use(keys: Keys, uses: Uses, credentials: Authenticator) -> None:
    """Ours: only a key that was accepted counts as used (IDN-5)."""
    minted = mint_key()
    keys.add(minted, revoked_at=datetime.now(UTC))
    for text in (minted.text, mint_key().text, mint_key(key=minted.id).text):
        with pytest.raises(Exception, match="credential"):
            await credentials.authenticate(f"Bearer {text}")
    await uses.log.store()
    assert uses.saved == []
