"""Accounts of users in the catalog: for which terms and owners they count, and how many a tenant has."""

import math
from dataclasses import replace

import pytest

from gateway.catalog.identity import accounts, issuers, people
from gateway.catalog.kinds.credentials import CREDENTIALS
from gateway.catalog.transaction import CatalogContext
from gateway.domain.audit import CallRecord
from gateway.domain.credentials import CredentialKind
from gateway.domain.http.requests import NamedCredential
from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.accounts import AccountOwner, UserAccount
from gateway.domain.tenancy.keys import Key
from gateway.domain.tenancy.sign_ins import ProviderTokens
from gateway.errors import Conflict, Forbidden, LimitExceeded
from gateway.store.identity import people as stored_people
from tests.integration.catalog.conftest import BY, Changes
from tests.integration.catalog.test_people import DRAFT as ISSUER
from tests.integration.store.samples import make_person
from tests.support.catalog_options import with_options
from tests.support.credentials import make_credential

CLIENT = make_credential(
    "tracker",
    kind=CredentialKind.USER,
    client_id="gateway",
    value="secret",
    authorization_url="https://login.example/authorize",
    token_url="https://login.example/token",
)
TOKENS = ProviderTokens(access_token="access", access_ends_at=math.inf)


async def _note(_: CallRecord) -> None:
    return


class _World:
    """A tenant with a credential of accounts and a person."""

    def __init__(self, catalog: CatalogContext, named: NamedCredential, person: Key) -> None:
        self.catalog = catalog
        self.named = named
        self.person = person

    async def connect(self, named: NamedCredential | None = None, person: Key | None = None) -> UserAccount:
        found = person or self.person
        owner = AccountOwner(tenant=found.tenant, id=found.id, subject=found.principal, name=f"user:{found.principal}")
        return await accounts.connect_account(
            self.catalog, owner, named or self.named, TOKENS, scopes=(), correlation_id="c"
        )


@pytest.fixture
async def world(changes: Changes) -> _World:
    """The tenant `acme`."""
    tenant, catalog = (
        changes.tenant.id,
        with_options(replace(changes.catalog, audit=_note), public_url="https://gateway.example"),
    )
    await CREDENTIALS.create(tenant, catalog, CLIENT, by=BY)
    issuer = await issuers.create_issuer(tenant, catalog, ISSUER, by=BY)
    async with catalog.store.transaction(tenant) as db:
        person = await stored_people.enter(tenant, db, make_person(tenant, issuer))
    return _World(catalog, await accounts.open_client(tenant, catalog, "tracker"), person)


async def test_an_account_counts_for_its_terms_only(world: _World) -> None:
    """Ours: tokens of a user go only where the user has sent them; also while the credential changes (TEN-4)."""
    tenant, elsewhere = world.person.tenant, replace(world.named, origins=("https://evil.example",))
    made = await world.connect()
    owner, found = await accounts.find_account(tenant, world.catalog, world.person.id, world.named)
    assert found is not None
    assert (owner, found.account, found.tokens) == (world.person.id, made, TOKENS)
    for other in (elsewhere, replace(world.named, field="X-Token"), replace(world.named, place="header")):
        assert await accounts.find_account(tenant, world.catalog, world.person.id, other) == (owner, None)
    with pytest.raises(Conflict):
        await world.connect(elsewhere)


async def test_a_person_denied_in_between_connects_nothing(world: _World) -> None:
    """Ours: between the page and the stored account, a denial counts (TEN-4)."""
    await people.deny_person(world.person.tenant, world.catalog, world.person.id, by=BY)
    with pytest.raises(Forbidden):
        await world.connect()
    assert await accounts.page_accounts(world.person.tenant, world.catalog, after=None, limit=10) == []


async def test_accounts_are_bounded(world: _World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: users of a provider fill no table; one who has an account connects it again (ISO-6)."""
    monkeypatch.setattr(accounts, "MAX_ACCOUNTS", 1)
    await world.connect()
    await world.connect()
    async with world.catalog.store.transaction(world.person.tenant) as db:
        other = replace(world.person, id=KeyId("key_other"), subject="corp:other")
        await stored_people.enter(world.person.tenant, db, other)
    with pytest.raises(LimitExceeded):
        await world.connect(person=other)
