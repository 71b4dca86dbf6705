"""Sign-in with access tokens: resources, cached callers, batches of suspects."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from gateway.domain.identifiers import IssuerId, KeyId, TenantId
from gateway.domain.tenancy.access import Rights, Role
from gateway.domain.tenancy.issuers import AdmissionRule, Issuer, TenantIssuers
from gateway.domain.tenancy.keys import Key, Scope, mint_key
from gateway.domain.tenancy.principals import Caller, Principal
from gateway.errors import DatabaseUnavailable, LimitExceeded, NotFound, Unauthenticated
from gateway.identity.authenticator import Authenticator
from gateway.identity.failure_limit import FailureLimit
from gateway.identity.issued_tokens import IssuedTokens
from gateway.identity.people import IssuerDirectory, People, Target, TokenVerifiers
from gateway.upstream.auth.signing_keys import SigningKeys
from tests.support.issuer import public_jwk
from tests.unit.identity.test_authenticator import DIGESTS, OPERATOR_KEY, Keys

TENANT = TenantId("ten_1")
PRIVATE = ec.generate_private_key(ec.SECP256R1())
BASE = "https://gateway.example"
NOW = datetime.now(UTC)
CORP = Issuer(
    id=IssuerId("iss_1"),
    name="corp",
    url="https://login.example",
    jwks_url="https://login.example/keys",
    audiences=(),
    algorithms=("ES256",),
    subject_claim="sub",
    groups_claim="/realm/groups",
    rules=(AdmissionRule(),),
    max_lifetime_s=3600,
    enabled=True,
    version=1,
    created_at=NOW,
    updated_at=NOW,
)


class Stored(Keys):
    """Keys, people with the same roles, and issuers in dictionaries; `asked_slugs` are the lookups of issuers."""

    def __init__(self) -> None:
        super().__init__()
        self.issuers = {"acme": TenantIssuers(tenant=TENANT, issuers=(CORP,))}
        self.asked_slugs: list[list[str]] = []
        self.roles = frozenset[Role]()

    async def find_issuers(self, slugs: Collection[str]) -> Mapping[str, TenantIssuers]:
        self.asked_slugs.append(sorted(slugs))
        return {slug: self.issuers[slug] for slug in slugs if slug in self.issuers}

    async def enter(self, person: Key) -> Key:
        if self.is_away:
            raise DatabaseUnavailable("PostgreSQL does not respond")
        return self.stored.setdefault(person.id, (person, "acme"))[0]

    async def find_rights(self, principal: Principal) -> Rights:
        return Rights(self.roles)


class Published:
    """The keys of the issuer."""

    async def find(
        self, tenant: TenantId, url: str, kid: str | None, *, state: str = ""
    ) -> Sequence[Mapping[str, Any]]:
        assert (tenant, url) == (TENANT, CORP.jwks_url)
        return [public_jwk(PRIVATE, "k")]


def _credentials(stored: Stored, *, failures: int = 1000, interval_s: float = 0.01) -> Authenticator:
    limit = FailureLimit(1e-6, burst=failures, interval_s=interval_s)
    directory = IssuerDirectory(stored.find_issuers, interval_s=interval_s)
    verifiers = TokenVerifiers(Published(), IssuedTokens(SigningKeys([b"k" * 32])))
    people = People(directory, verifiers, stored, public_url=BASE + "/")
    return Authenticator(stored, digests=DIGESTS, operator_key=OPERATOR_KEY, failures=limit, people=people)


def _token(path: str = "/t/acme/mcp", **claims: object) -> str:
    now = int(time.time())
    standard = {"iss": CORP.url, "sub": "ada", "aud": BASE + path, "iat": now, "exp": now + 600}
    return "Bearer " + jwt.encode({**standard, **claims}, PRIVATE, algorithm="ES256", headers={"kid": "k"})


def _at(path: str = "/t/acme/mcp") -> Target:
    return Target("http://inside", path)


async def test_a_cached_token_is_for_the_resource_that_it_was_checked_for() -> None:
    """Ours: a token with two audiences gives a caller of each URL, not the first one's everywhere (TEN-2)."""
    credentials = _credentials(Stored())
    token = _token(aud=[f"{BASE}/t/acme/mcp", f"{BASE}/t/acme/cats/mcp"])

    callers = [await credentials.authenticate(token, target=_at(path)) for path in ("/t/acme/mcp", "/t/acme/cats/mcp")]

    assert [caller.profile for caller in callers if isinstance(caller, Principal)] == ["default", "cats"]
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(token, target=_at("/t/acme/dogs/mcp"))
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(token)


async def test_a_person_of_an_issuer_that_was_just_deleted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a cached issuer whose row is gone is no issuer, and no missing page (TEN-2)."""
    stored = Stored()

    async def enter(person: Key) -> Key:
        raise NotFound(f"no such issuer {person.issuer}")

    monkeypatch.setattr(stored, "enter", enter)
    with pytest.raises(Unauthenticated):
        await _credentials(stored).authenticate(_token(), target=_at())


async def test_a_changed_person_is_signed_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: renewing cached callers together drops people whose row changed, for example with their issuer (TEN-2)."""
    stored = Stored()
    credentials = _credentials(stored)
    first = [await credentials.authenticate(_token(sub=name), target=_at()) for name in ("ada", "bob")]
    tokens = [_token(sub=name) for name in ("ada", "bob")]
    for token in tokens:
        await credentials.authenticate(token, target=_at())
        await credentials.authenticate(token, target=_at())
    changed = first[0]
    assert isinstance(changed, Principal)
    row, slug = stored.stored[changed.key]
    stored.stored[changed.key] = replace(row, version=2), slug
    stored.issuers = {}
    started = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: started + 2.0)
    minted = mint_key()
    stored.add(minted)
    await credentials.authenticate(f"Bearer {minted.text}")  # its lookup takes the others along
    monkeypatch.setattr(time, "monotonic", lambda: started + 3.5)

    with pytest.raises(Unauthenticated):
        await credentials.authenticate(tokens[0], target=_at())
    assert await credentials.authenticate(tokens[1], target=_at()) == first[1]


async def test_a_token_ends_for_streams_too() -> None:
    """Ours: a verified token is valid as long as the token, the person and the person's version (TEN-2)."""
    stored = Stored()
    credentials = _credentials(stored)
    caller = await credentials.authenticate(_token(), target=_at())
    assert isinstance(caller, Principal)

    assert await credentials.still_valid(caller)
    assert not await credentials.still_valid(replace(caller, expires_at=NOW))
    assert not await credentials.still_valid(replace(caller, version=2))
    found = await credentials.principal_of(caller.key)
    assert found is not None
    assert (found.subject, found.profile, found.name) == ("corp:ada", None, "user:corp:ada")


async def test_a_caller_is_known_for_a_minute_without_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: as for keys; a token that was never checked is not accepted meanwhile (TEN-2)."""
    stored = Stored()
    credentials = _credentials(stored)
    token = _token()
    caller = await credentials.authenticate(token, target=_at())
    stored.is_away = True
    started = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: started + 30)

    assert await credentials.authenticate(token, target=_at()) is caller
    with pytest.raises(DatabaseUnavailable):
        await credentials.authenticate(_token(sub="bob"), target=_at())
    monkeypatch.setattr(time, "monotonic", lambda: started + 61)
    with pytest.raises(DatabaseUnavailable):
        await credentials.authenticate(token, target=_at())


class SlowPeople(Stored):
    """People whose lookup is finished when a test sets the event; `entered` counts the lookups."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = 0
        self.go_on = anyio.Event()

    async def enter(self, person: Key) -> Key:
        self.entered += 1
        found = await super().enter(person)
        await self.go_on.wait()
        return found


async def test_concurrent_requests_with_one_token_are_one_lookup() -> None:
    """Ours: requests with one token are one verification and one query for each client network (TEN-3)."""
    stored = SlowPeople()
    credentials, token, callers = _credentials(stored), _token(), list[Caller]()

    async def come(address: str) -> None:
        callers.append(await credentials.authenticate(token, address=address, target=_at()))

    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(come, f"192.0.2.{1 + number % 2}")
        await anyio.wait_all_tasks_blocked()
        stored.go_on.set()

    assert (stored.entered, len(callers)) == (2, 100)
    assert len({id(caller) for caller in callers}) <= 2
    assert await credentials.authenticate(token, target=_at()) in callers
    assert stored.entered == 2


@pytest.mark.parametrize("change", ["person", "issuer"])
async def test_a_lookup_before_a_change_is_not_for_requests_after_it(change: str) -> None:
    """Ours: a denied person or an issuer that is gone is refused while an older lookup still runs (TEN-2)."""
    stored = SlowPeople()
    credentials, token = _credentials(stored), _token()
    async with anyio.create_task_group() as group:
        group.start_soon(partial(credentials.authenticate, token, target=_at()))
        await anyio.wait_all_tasks_blocked()
        [(key, (person, slug))] = stored.stored.items()
        if change == "person":
            stored.stored[key] = replace(person, revoked_at=NOW), slug
            credentials.forget(key)
            stored.go_on, older = anyio.Event(), stored.go_on
            stored.go_on.set()
        else:
            stored.issuers, older = {}, stored.go_on
            credentials.forget_issuers(TENANT)
        with anyio.fail_after(10), pytest.raises(Unauthenticated):
            await credentials.authenticate(token, target=_at())
        older.set()


async def test_clocks_may_differ_by_a_minute() -> None:
    """RFC 7519 §4.1: a token counts up to a minute after its end, and up to a minute before its begin (TEN-2)."""
    credentials, now = _credentials(Stored()), int(time.time())
    for near in (_token(exp=now - 30), _token(nbf=now + 30), _token(iat=now + 30)):
        assert isinstance(await credentials.authenticate(near, target=_at()), Principal)
    for far in (_token(exp=now - 65), _token(nbf=now + 90), _token(iat=now + 90)):
        with pytest.raises(Unauthenticated):
            await credentials.authenticate(far, target=_at())


async def test_a_lost_role_counts_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the scopes of a person at the admin API are those of the roles of the last three seconds (IDN-4)."""
    stored, path = Stored(), "/admin/v1/tenants/acme"
    credentials, token = _credentials(stored), _token(path)

    async def scopes(at: str) -> set[Scope]:
        caller = await credentials.authenticate(token, target=_at(at))
        assert isinstance(caller, Principal)
        assert (caller.name, caller.profile) == ("user:corp:ada", None)
        return set(caller.scopes)

    stored.roles = frozenset(Role)
    assert await scopes(f"{path}/tools") == {Scope.MCP, Scope.ADMIN, Scope.AUDIT}
    stored.roles = frozenset({Role.APPROVE})
    assert await scopes(f"{path}/keys") == {Scope.MCP, Scope.ADMIN, Scope.AUDIT}
    started = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: started + 3.5)
    assert await scopes(path) == set()
    for other in ("/t/acme/mcp", "/admin/v1/tenants", "/admin/v1/tenants/", "/admin/v1/tenants/globex/tools"):
        with pytest.raises(Unauthenticated):
            await credentials.authenticate(token, target=_at(other))


async def test_suspects_look_up_issuers_in_batches() -> None:
    """Ours: made-up tenants in the URLs of an address that fails do not cost a query each (ISO-6)."""
    stored = Stored()
    credentials = _credentials(stored, failures=1)
    for slug in ("a", "b"):
        with pytest.raises((Unauthenticated, LimitExceeded)):
            await credentials.authenticate(_token(), address="192.0.2.1", target=_at(f"/t/{slug}/mcp"))
    people = credentials.people
    assert people is not None
    suspect = credentials.is_suspect("192.0.2.1")
    assert suspect is not None
    stored.asked_slugs.clear()

    async with anyio.create_task_group() as group:
        for index in range(50):
            group.start_soon(people.directory.issuers_of, f"t{index}", suspect)

    assert len(stored.asked_slugs) == 1


@pytest.mark.parametrize(
    "path",
    ['/t/a"b/mcp', "/t/a\r\nx: y/mcp", "/t/ä/mcp", "/t//mcp", "/t/a/b/c/mcp", "/t/A/mcp", "/t/a/mcp/", "/t/acme/hooks"],
)
def test_only_names_of_tenants_reach_a_header(path: str) -> None:
    """Ours: the challenge quotes the path of a request, so no other path is quoted (TEN-2)."""
    people = _credentials(Stored()).people
    assert people is not None

    found = people.find_resource(_at("/t/acme/messages"))

    assert people.find_resource(_at(path)) is None
    assert found is not None
    assert found.metadata_url == f"{BASE}/.well-known/oauth-protected-resource/t/acme/sse"


async def test_groups_are_found_by_a_pointer() -> None:
    """Ours: providers nest the groups of a person; a rule may name one of them (TEN-2)."""
    stored = Stored()
    rules = (AdmissionRule(group="keepers"),)
    stored.issuers = {"acme": TenantIssuers(tenant=TENANT, issuers=(replace(CORP, rules=rules),))}

    caller = await _credentials(stored).authenticate(_token(realm={"groups": ["keepers"]}), target=_at())

    assert isinstance(caller, Principal)
    assert KeyId(caller.key) in stored.stored


async def test_an_algorithm_that_the_issuer_does_not_use_is_refused() -> None:
    """Ours: the list of the issuer decides, not the header of the token, even if the key could verify it (TEN-2)."""
    stored = Stored()
    stored.issuers = {"acme": TenantIssuers(tenant=TENANT, issuers=(replace(CORP, algorithms=("RS256",)),))}

    with pytest.raises(Unauthenticated):
        await _credentials(stored).authenticate(_token(), target=_at())


async def test_headers_with_keys_are_not_kept_in_memory() -> None:
    """Ours: digests are cached by header for access tokens only; the cached caller decides as for others (TEN-4)."""
    stored, minted = Stored(), mint_key()
    stored.add(minted)
    credentials, token, admin = _credentials(stored), _token(), _at("/admin/v1/tenants/acme/tools")
    caller = await credentials.authenticate(token, target=_at())
    for _ in range(2):
        await credentials.authenticate(f"bearer {minted.text}", target=_at())
        await credentials.authenticate(f"Bearer {OPERATOR_KEY}", target=admin)
        assert await credentials.authenticate(token, target=_at()) is caller
    kept = repr(vars(credentials))
    assert token in kept
    assert minted.text not in kept
    assert OPERATOR_KEY not in kept

    assert isinstance(caller, Principal)
    stored.stored[caller.key] = replace(stored.stored[caller.key][0], revoked_at=NOW), "acme"
    credentials.forget(caller.key)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(token, target=_at())
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(token, target=_at("/t/acme/cats/mcp"))


async def test_a_key_is_no_access_token_wherever_it_is_used() -> None:
    """Ours: a key at the URL of a resource is looked up as a key, however its header is written (TEN-3)."""
    stored = Stored()
    minted = mint_key()
    stored.add(minted)
    credentials = _credentials(stored)
    headers = [f"{scheme}{minted.text}" for scheme in ("bearer ", "Bearer   ")]

    callers = [await credentials.authenticate(header, target=_at()) for header in headers]

    assert {caller.is_person for caller in callers if isinstance(caller, Principal)} == {False}
    assert stored.asked_slugs == []
