"""Sessions of console pages: their times, their seals, and the two names of their cookie."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.keys import Key, KeySecret, Scope, digest_key, mint_key
from gateway.errors import Forbidden, RedisUnavailable, Unauthenticated
from gateway.identity.authenticator import Authenticator
from gateway.identity.key_digests import KeyDigests
from gateway.web.console.sessions import ConsoleSession, ConsoleSessions

OPERATOR = "operator-key-of-the-tests-0123456789"
PEPPER, FIRST, SECOND = b"pepper", b"1" * 32, b"2" * 32


class Finder:
    """One key with the scope `approve`."""

    def __init__(self) -> None:
        self.minted = mint_key()
        self.key = Key(
            tenant=TenantId("ten_acme"),
            id=self.minted.id,
            name="ada",
            scopes=frozenset({Scope.APPROVE}),
            subject="Ada",
            profile=None,
            secret=KeySecret(digest=digest_key(self.minted.text, PEPPER)),
            created_at=datetime.now(UTC),
            expires_at=None,
            revoked_at=None,
            version=1,
        )

    async def find(self, wanted: Any, *, hurried: bool = False) -> dict[KeyId, tuple[Key, str]]:
        return {self.key.id: (self.key, "acme")} if self.key.id in wanted else {}


class Marks:
    """Marks of ended sessions; while Redis is away they are neither written nor read."""

    def __init__(self) -> None:
        self.marked: set[str] = set()
        self.is_away = False

    async def use(self, tenant: TenantId, nonce: str, *, for_s: int) -> bool:
        if self.is_away:
            raise RedisUnavailable("away")
        self.marked.add(nonce)
        return True

    async def is_used(self, tenant: TenantId, nonce: str) -> bool:
        if self.is_away:
            raise RedisUnavailable("away")
        return nonce in self.marked


class Office:
    """Sessions whose time a test moves."""

    def __init__(self, *keys: bytes) -> None:
        self.now = 1_000_000.0
        self.finder = Finder()
        self.ended = Marks()
        self.credentials = Authenticator(self.finder, digests=KeyDigests({"k": PEPPER}), operator_key=OPERATOR)
        self.sessions = self.sealed_with(*keys or (FIRST,))

    def sealed_with(self, *keys: bytes) -> ConsoleSessions:
        return ConsoleSessions(keys, self.credentials, self.ended, clock=lambda: self.now)

    async def begin(self, *, is_secure: bool = True) -> ConsoleSession:
        return await self.sessions.begin(self.finder.minted.text, address="", is_secure=is_secure)

    def cookies(self, session: ConsoleSession) -> dict[str, str]:
        name, _, rest = self.sessions.cookie_of(session).partition("=")
        return {name: rest.partition(";")[0]}


async def test_a_session_is_found_as_it_began() -> None:
    """Ours: with its principal, and without the key (SAF-3)."""
    office = Office()
    session = await office.begin()
    cookies = office.cookies(session)

    assert await office.sessions.find(cookies) == session
    assert session.principal.subject == "Ada"
    assert office.finder.minted.text not in repr(session)


async def test_a_session_ends_after_an_hour_without_a_request() -> None:
    """Ours: each response seals it again (SAF-3)."""
    office = Office()
    session = await office.begin()
    cookies = office.cookies(session)
    office.now += 3599
    assert await office.sessions.find(cookies) == session
    renewed = office.cookies(session)
    office.now += 3000
    assert await office.sessions.find(cookies) is None
    assert await office.sessions.find(renewed) == session


async def test_a_session_ends_after_eight_hours_of_use() -> None:
    """Ours: however often it is used (SAF-3)."""
    office = Office()
    session = await office.begin()
    for _ in range(16):
        office.now += 1790
        assert await office.sessions.find(office.cookies(session)) == session
    office.now += 1790
    assert await office.sessions.find(office.cookies(session)) is None


async def test_without_redis_people_still_decide() -> None:
    """Ours: the mark of an ended session is a further wall; the key and the times still hold (SAF-3)."""
    office = Office()
    cookies = office.cookies(session := await office.begin())
    office.ended.is_away = True
    await office.sessions.end(session)
    assert await office.sessions.find(cookies) == session


async def test_a_rotated_secret_key_opens_older_cookies() -> None:
    """Ours: until the older secret key is removed (SEC-2)."""
    office = Office()
    cookies = office.cookies(session := await office.begin())

    assert await office.sealed_with(SECOND, FIRST).find(cookies) == session
    assert await office.sealed_with(SECOND).find(cookies) is None


async def test_a_session_has_the_name_that_it_began_with() -> None:
    """RFC 6265bis: a cookie that was made without TLS does not open under the name that requires it (SAF-3)."""
    office = Office()
    for is_secure in (True, False):
        [(name, value)] = office.cookies(await office.begin(is_secure=is_secure)).items()
        other = "gateway-session" if is_secure else "__Host-gateway-session"
        assert name != other
        assert await office.sessions.find({other: value}) is None


async def test_a_form_token_is_of_one_session() -> None:
    """Ours: another session of the same key has another token (SAF-3)."""
    office = Office()
    one, two = await office.begin(), await office.begin()

    assert office.sessions.is_form_token(one, office.sessions.form_token(one))
    assert not office.sessions.is_form_token(one, office.sessions.form_token(two))
    assert not office.sessions.is_form_token(one, "")
    assert not office.sessions.is_form_token(one, "é")


async def test_the_operator_and_unknown_keys_begin_no_session() -> None:
    """Ours: a session has a tenant (SAF-3)."""
    office = Office()
    with pytest.raises(Forbidden):
        await office.sessions.begin(OPERATOR, address="", is_secure=True)
    with pytest.raises(Unauthenticated):
        await office.sessions.begin(mint_key().text, address="", is_secure=True)
