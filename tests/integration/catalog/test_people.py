"""People and issuers in the catalog: their limits, and what a denial reaches."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.catalog.identity import issuers, people, sign_ins
from gateway.catalog.identity.issuer_drafts import IssuerDraft
from gateway.domain.audit import CallRecord
from gateway.domain.events import KeyChanged
from gateway.domain.tenancy.issuers import AdmissionRule, Issuer, person_id
from gateway.domain.tenancy.keys import Key, KeySecret, Scope
from gateway.domain.tenancy.sign_ins import SignIn
from gateway.errors import InvalidBody, LimitExceeded, NotFound
from gateway.kinds.identity import MAX_ISSUERS
from tests.integration.catalog.conftest import BY, Changes
from tests.integration.store.samples import make_provider_tokens, make_sign_in

DRAFT = IssuerDraft(
    name="corp",
    url="https://login.example",
    jwks_url="https://login.example/keys",
    rules=(AdmissionRule(),),
    algorithms=("RS256",),
    subject_claim="sub",
    groups_claim="groups",
    max_lifetime_s=3600,
    enabled=False,
)
OTHER = KeySecret(digest=b"x")


@pytest.fixture
async def issuer(changes: Changes) -> Issuer:
    """An issuer of `acme`."""
    return await issuers.create_issuer(changes.tenant.id, changes.catalog, DRAFT, by=BY)


def _person(changes: Changes, issuer: Issuer, name: str, *, ends: datetime | None = None) -> Key:
    return Key(
        tenant=changes.tenant.id,
        id=person_id(changes.tenant.id, issuer.id, name),
        name=name,
        scopes=frozenset({Scope.MCP}),
        subject=issuer.subject_of(name),
        profile=None,
        secret=KeySecret(digest=b"d"),
        created_at=datetime.now(UTC),
        expires_at=ends or datetime.now(UTC) + timedelta(days=1),
        revoked_at=None,
        version=1,
        issuer=issuer.id,
    )


async def test_people_are_bounded_and_old_ones_make_room(
    changes: Changes, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: an issuer with any number of users fills no table; a denied person stays denied (ISO-6, TEN-2)."""
    monkeypatch.setattr(people, "MAX_PEOPLE", 2)
    store = changes.catalog.store
    old = datetime.now(UTC) - timedelta(days=31)
    for name in ("ada", "bob"):
        await people.store_person(store, _person(changes, issuer, name, ends=old))
    ada = _person(changes, issuer, "ada")
    await people.deny_person(changes.tenant.id, changes.catalog, ada.id, by=BY)

    await people.store_person(store, _person(changes, issuer, "cid"))
    with pytest.raises(LimitExceeded):
        await people.store_person(store, _person(changes, issuer, "dan"))

    found = await people.page_people(changes.tenant.id, changes.catalog, after=None, limit=10)
    assert {person.name for person in found} == {"ada", "cid"}
    assert (await people.store_person(store, ada)).revoked_at is not None


async def test_a_person_is_stored_once_and_again_only_for_a_later_end(changes: Changes, issuer: Issuer) -> None:
    """Ours: a person who calls all day costs no write per call, and keeps version and first sign-in (TEN-2)."""
    store, ada = changes.catalog.store, _person(changes, issuer, "ada")
    assert ada.expires_at is not None
    first = await people.store_person(store, ada)
    soon = await people.store_person(store, replace(ada, expires_at=ada.expires_at + timedelta(hours=1)))
    later = await people.store_person(
        store, replace(ada, expires_at=ada.expires_at + timedelta(hours=13), secret=OTHER)
    )

    assert soon == first
    assert later.expires_at == ada.expires_at + timedelta(hours=13)
    assert (later.version, later.created_at, later.secret) == (1, first.created_at, first.secret)


async def test_a_person_is_denied_by_subject_before_the_first_sign_in(
    changes: Changes, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the first sign-in finds the denial, which a full table of people does not prevent (TEN-2, ISO-6)."""
    tenant, store = changes.tenant.id, changes.catalog.store
    monkeypatch.setattr(people, "MAX_PEOPLE", 1)
    monkeypatch.setattr(people, "MAX_DENIED_AHEAD", 1)
    await people.store_person(store, _person(changes, issuer, "ada"))
    for subject in ("other:bob", "corp:", "corp: bob", f"corp:{'b' * 201}"):
        with pytest.raises(NotFound if subject.startswith("other") else InvalidBody):
            await people.deny_person(tenant, changes.catalog, subject, by=BY)

    denied = await people.deny_person(tenant, changes.catalog, "corp:bob", by=BY)
    again = await people.deny_person(tenant, changes.catalog, "corp:bob", by=BY)
    signed_in = await people.store_person(store, _person(changes, issuer, "bob"))

    assert (denied.id, again.denied_at) == (person_id(tenant, issuer.id, "bob"), denied.denied_at)
    assert signed_in.revoked_at == denied.denied_at is not None
    with pytest.raises(LimitExceeded):
        await people.deny_person(tenant, changes.catalog, "corp:cid", by=BY)
    with pytest.raises(NotFound):
        await people.allow_person(tenant, changes.catalog, "corp:cid", by=BY)
    assert (await people.allow_person(tenant, changes.catalog, "corp:bob", by=BY)).denied_at is None


async def test_issuers_are_bounded_and_need_tls(changes: Changes, issuer: Issuer) -> None:
    """Ours: a tenant has few issuers, each by https but where the operator permits the host (ISO-6, TEN-2)."""
    for index in range(MAX_ISSUERS - 1):
        draft = replace(DRAFT, name=f"n{index}", url=f"https://login.example/{index}")
        await issuers.create_issuer(changes.tenant.id, changes.catalog, draft, by=BY)
    with pytest.raises(LimitExceeded):
        draft = replace(DRAFT, name="more", url="https://login.example/more")
        await issuers.create_issuer(changes.tenant.id, changes.catalog, draft, by=BY)
    for url in ("http://login.example", "https://login.example?tenant=a", "ftp://login.example", "https://"):
        draft = replace(DRAFT, name="plain", url=url, enabled=True)
        with pytest.raises(InvalidBody, match="https"):
            await issuers.create_issuer(changes.tenant.id, changes.catalog, draft, by=BY)
    assert changes.upstream.seen == []
    assert issuer.name == "corp"


async def test_a_change_of_an_issuer_ends_streams_of_its_people(changes: Changes, issuer: Issuer) -> None:
    """Ours: each person has another version then, which streams and cached callers are compared with (TEN-2)."""
    tenant, ada = changes.tenant.id, _person(changes, issuer, "ada")
    await people.store_person(changes.catalog.store, ada)
    changes.events.clear()

    await issuers.update_issuer(tenant, changes.catalog, "corp", lambda draft: replace(draft, max_lifetime_s=60), by=BY)

    assert KeyChanged(tenant=tenant, key=ada.id) in changes.events
    assert (await people.get_person(tenant, changes.catalog, ada.id)).version == 2
    await issuers.remove_issuer(tenant, changes.catalog, "corp", by=BY)
    assert KeyChanged(tenant=tenant, key=ada.id, is_ended=True) in changes.events
    assert await people.page_people(tenant, changes.catalog, after=None, limit=10) == []


async def test_a_person_has_few_sessions(changes: Changes, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: one more browser ends the oldest session of the person (ISO-6)."""
    monkeypatch.setattr(sign_ins, "MAX_SESSIONS", 2)
    recorded: list[CallRecord] = []

    async def record(entry: CallRecord) -> None:
        recorded.append(entry)

    catalog = replace(changes.catalog, audit=record)
    tenant, ada, made = changes.tenant.id, _person(changes, issuer, "ada"), list[SignIn]()
    for index in range(3):
        each = replace(make_sign_in(issuer, ada, "ada"), created_at=datetime.now(UTC), checked_at=datetime.now(UTC))
        each = replace(each, session_ends_at=datetime.now(UTC) + timedelta(hours=index + 1))
        await sign_ins.enter_sign_in(tenant, catalog, ada, each, tokens=make_provider_tokens("ada"), correlation_id="c")
        made.append(each)

    found = [await sign_ins.find_session(tenant, catalog, each.id) for each in made]
    assert [(entry.action, entry.principal) for entry in recorded] == [("sign-in", "user:corp:ada")] * 3
    assert [each is not None for each in found] == [False, True, True]
    await sign_ins.end_session(tenant, catalog, made[1].id)
    assert await sign_ins.find_session(tenant, catalog, made[1].id) is None
