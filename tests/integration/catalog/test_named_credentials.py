"""Named credentials and profiles in the catalog: whole or not at all, and never gone while they are used."""

import time
from dataclasses import replace
from typing import Any

import pytest

from gateway.catalog import audit
from gateway.catalog.kinds.credentials import CREDENTIALS
from gateway.catalog.kinds.keys import KEYS
from gateway.catalog.kinds.primitives import TOOLS
from gateway.catalog.kinds.profiles import PROFILES
from gateway.catalog.snapshots.credential_cache import CredentialCache
from gateway.catalog.transaction import Author
from gateway.domain.audit import AuditFilter
from gateway.domain.credentials import CredentialKind, CredentialLocation, StoredCredential
from gateway.domain.identifiers import SourceId
from gateway.domain.members.secret import Secret
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.principals import Operator
from gateway.domain.tenancy.profiles import Profile, Rule
from gateway.errors import (
    Conflict,
    DatabaseUnavailable,
    InvalidBody,
    NameTaken,
    NotFound,
    PreconditionFailed,
    ReferenceMissing,
)
from gateway.store.engine import Store
from tests.integration.catalog.conftest import Changes
from tests.support.catalog_options import with_options
from tests.support.credentials import ORIGIN, make_credential, with_secrets
from tests.support.ids import new_profile_id
from tests.support.keys import new_key
from tests.support.own_primitives import create_own
from tests.support.primitives import static_tool, tool

BY = Author(caller=Operator(), correlation_id="test")
BEARER = make_credential(value="s3cr3t-canary")
FETCH = tool("fetch", {"kind": "http", "method": "GET", "url": f"{ORIGIN}/x", "credential": "token"})


async def _create_tool(changes: Changes, body: dict[str, Any]) -> None:
    await create_own(changes.tenant.id, changes.catalog, Family.TOOL, body, by=BY)


def _secrets(changes: Changes) -> CredentialCache:
    return CredentialCache(changes.catalog.store, changes.catalog.sealer)


async def test_a_credential_is_for_calls_and_for_no_answer(changes: Changes) -> None:
    """Ours: the secret reaches the wire and neither a list, an object nor the trail (TEN-4)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    made = await CREDENTIALS.create(tenant, catalog, BEARER, by=BY)
    trail = await audit.page_entries(tenant, catalog, AuditFilter(), after=None, limit=10)
    listed = await CREDENTIALS.page(tenant, catalog, after=None, limit=10)
    assert "s3cr3t-canary" not in repr((made, trail, listed, BEARER))
    found = await _secrets(changes).named(tenant, "token")
    assert found is not None
    assert (found.credential.value, found.origins, found.field) == ("s3cr3t-canary", (ORIGIN,), "Authorization")
    assert await _secrets(changes).named(tenant, "none") is None


async def test_a_credential_works_for_a_minute_without_a_database(
    changes: Changes, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: calls that only read go on with what they had when the database went away, then no longer (SRV-4)."""
    tenant, catalog, now = changes.tenant.id, changes.catalog, time.monotonic
    await CREDENTIALS.create(tenant, catalog, BEARER, by=BY)
    async with Store(database_url) as store:
        secrets = CredentialCache(store, catalog.sealer)
        kept = await secrets.named(tenant, "token")
        none = await secrets.credentials(tenant, SourceId("src_none"))
    assert kept is not None  # from here on the store is closed, as good as away

    monkeypatch.setattr("gateway.catalog.snapshots.credential_cache.time.monotonic", lambda: now() + 40)
    assert await secrets.named(tenant, "token") == kept
    assert await secrets.credentials(tenant, SourceId("src_none")) == none
    monkeypatch.setattr("gateway.catalog.snapshots.credential_cache.time.monotonic", lambda: now() + 61)
    for wanted in (secrets.named(tenant, "token"), secrets.credentials(tenant, SourceId("src_none"))):
        with pytest.raises(DatabaseUnavailable):
            await wanted
    monkeypatch.setattr("gateway.catalog.snapshots.credential_cache.time.monotonic", lambda: now() + 40)
    secrets.forget(tenant)
    with pytest.raises(DatabaseUnavailable):
        await secrets.named(tenant, "token")


async def test_a_credential_is_kept_until_it_is_forgotten(changes: Changes) -> None:
    """Ours: calls read a credential once, and the new one as soon as the catalog has moved (TEN-4)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    secrets = _secrets(changes)
    assert await secrets.named(tenant, "token") is None
    await CREDENTIALS.create(tenant, catalog, BEARER, by=BY)
    assert await secrets.named(tenant, "token") is None
    secrets.forget(tenant)
    first = await secrets.named(tenant, "token")
    assert first is await secrets.named(tenant, "token") is not None
    await CREDENTIALS.set(
        tenant, catalog, "token", lambda current: replace(current or BEARER, value=Secret("other")), by=BY
    )
    secrets.forget_all()
    second = await secrets.named(tenant, "token")
    assert second is not None
    assert second.credential.value == "other"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"origins": ("https://api.example/v1",)}, "/origins/0"),
        ({"place": CredentialLocation.HEADER}, "/field"),
        ({"place": CredentialLocation.HEADER, "field": "Host"}, "/field"),
        ({"place": CredentialLocation.HEADER, "field": "Transfer-Encoding"}, "/field"),
        ({"place": CredentialLocation.HEADER, "field": "X-Forwarded-For"}, "/field"),
        ({"place": CredentialLocation.HEADER, "field": "a b"}, "/field"),
        ({"field": "X-Key"}, "/field"),
        ({"value": None}, ""),
        ({"username": "u"}, ""),
        ({"value": "not\tascii ü"}, "/value"),
        ({"place": CredentialLocation.BASIC}, ""),
        ({"place": CredentialLocation.BASIC, "value": None, "username": "a:b", "password": "p"}, "/username"),
    ],
)
async def test_parts_that_do_not_belong_together_are_refused(
    changes: Changes, change: dict[str, Any], pointer: str
) -> None:
    """Ours: a credential that could not be sent as declared is not stored (TEN-4)."""
    with pytest.raises(InvalidBody) as refused:
        await CREDENTIALS.create(changes.tenant.id, changes.catalog, replace(BEARER, **with_secrets(change)), by=BY)
    assert [fault.pointer for fault in refused.value.faults] == [pointer]
    assert "s3cr3t" not in repr(refused.value.faults)


async def test_every_place_can_be_stored(changes: Changes) -> None:
    """Ours: header, query, bearer and basic (PRG-3)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    drafts = [
        BEARER,
        make_credential("h", place=CredentialLocation.HEADER, field="X-Key", value="x"),
        make_credential("q", place=CredentialLocation.QUERY, field="api_key", value="any thing ü"),
        make_credential("b", place=CredentialLocation.BASIC, username="u", password="p:ü"),
    ]
    for draft in drafts:
        await CREDENTIALS.create(tenant, catalog, draft, by=BY)
    basic = await _secrets(changes).named(tenant, "b")
    assert basic is not None
    assert (basic.credential.username, basic.credential.value) == ("u", "p:ü")
    with pytest.raises(NameTaken):
        await CREDENTIALS.create(tenant, catalog, BEARER, by=BY)


async def test_a_credential_in_use_stays(changes: Changes) -> None:
    """Ours: an object that handlers name is not removed, and the refusal lists them (PRG-3)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    made = await CREDENTIALS.create(tenant, catalog, BEARER, by=BY)
    await _create_tool(changes, FETCH)
    with pytest.raises(Conflict, match="tool fetch") as refused:
        await CREDENTIALS.remove(tenant, catalog, made.id, by=BY)
    assert [fault.reason for fault in refused.value.faults] == ["used by tool fetch"]
    await TOOLS.remove(tenant, catalog, "fetch", by=BY)
    with pytest.raises(PreconditionFailed):
        await CREDENTIALS.remove(tenant, catalog, "token", by=BY, expected=frozenset({"x"}))
    await CREDENTIALS.remove(tenant, catalog, "token", by=BY)
    with pytest.raises(NotFound):
        await CREDENTIALS.get(tenant, catalog, "token")


async def test_a_handler_sends_a_credential_only_where_it_may_go(changes: Changes) -> None:
    """Ours: a credential for one origin is refused in a request to another when it is stored (TEN-4)."""
    await CREDENTIALS.create(changes.tenant.id, changes.catalog, BEARER, by=BY)
    handler = {**FETCH["handler"], "url": "https://evil.example/x"}
    with pytest.raises(ReferenceMissing) as refused:
        await _create_tool(changes, tool("fetch", handler))
    assert refused.value.faults[0].pointer == "/handler/credential"


async def test_a_profile_that_keys_are_bound_to_stays(changes: Changes) -> None:
    """Ours: a key is bound to what there is, and that stays until the key is gone (CAP-1)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    with pytest.raises(ReferenceMissing):
        await KEYS.create(tenant, catalog, new_key(profile="small"), by=BY)
    await PROFILES.create(tenant, catalog, Profile(id=new_profile_id(), name="small"), by=BY)
    key = await KEYS.create(tenant, catalog, new_key(profile="small"), by=BY)
    await KEYS.create(tenant, catalog, new_key(profile="default"), by=BY)
    with pytest.raises(Conflict, match=key.id):
        await PROFILES.remove(tenant, catalog, "small", by=BY)
    await KEYS.remove(tenant, catalog, key.id, by=BY)
    await PROFILES.remove(tenant, catalog, "small", by=BY)


async def test_default_exists_and_cannot_be_changed(changes: Changes) -> None:
    """Ours: every tenant has `default`, in lists and by name, and it is everything (CAP-1)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    for name in ("default", "hooks"):
        with pytest.raises(NameTaken):
            await PROFILES.create(tenant, catalog, Profile(id=new_profile_id(), name=name), by=BY)
    for name in ("zoo", "abc"):
        await PROFILES.create(tenant, catalog, Profile(id=new_profile_id(), name=name), by=BY)
    whole = [one.name for one in await PROFILES.page(tenant, catalog, after=None, limit=10)]
    assert whole == ["abc", "default", "zoo"]
    parts: list[str] = []
    for _ in whole:
        [one] = await PROFILES.page(tenant, catalog, after=parts[-1] if parts else None, limit=1)
        parts.append(one.name)
    assert parts == whole
    with pytest.raises(Conflict):
        await PROFILES.change(tenant, catalog, "default", lambda profile: profile, by=BY)
    with pytest.raises(Conflict):
        await PROFILES.remove(tenant, catalog, "default", by=BY)
    assert (await PROFILES.get(tenant, catalog, "default")).include == ()


async def test_a_profile_keeps_its_rules(changes: Changes) -> None:
    """Ours: rules are changed whole, by name and by id (CAP-1)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    made = Profile(id=new_profile_id(), name="small", include=(Rule(safety=(Safety.SAFE,)),))
    stored = await PROFILES.create(tenant, catalog, made, by=BY)
    await _create_tool(changes, static_tool("say"))
    saved = await PROFILES.change(
        tenant, catalog, made.id, lambda profile: replace(profile, exclude=(Rule(names=("s*",)),)), by=BY
    )
    assert saved == replace(stored, exclude=(Rule(names=("s*",)),), version=2, updated_at=saved.updated_at)
    assert await PROFILES.get(tenant, catalog, "small") == saved


async def test_an_update_keeps_the_secret_and_absent_members(changes: Changes) -> None:
    """Ours: the scopes change, the secret and the origins stay; a new secret replaces the old one (TEN-4)."""
    tenant, catalog = changes.tenant.id, with_options(changes.catalog, public_url="https://gateway.example")
    cache, urls = _secrets(changes), {"authorization_url": "https://a.example/a", "token_url": "https://a.example/t"}
    made = make_credential(kind=CredentialKind.USER, client_id="gateway", value="s3cr3t-canary", **urls)
    await CREDENTIALS.create(tenant, catalog, made, by=BY)

    moved = await CREDENTIALS.change(tenant, catalog, "token", lambda one: replace(one, scopes=("read",)), by=BY)
    kept = await cache.named(tenant, "token")
    await CREDENTIALS.change(tenant, catalog, "token", lambda one: replace(one, value=Secret("new")), by=BY)
    cache.forget(tenant)
    renewed = await cache.named(tenant, "token")

    assert (moved.scopes, moved.origins, moved.value, moved.version) == (("read",), (ORIGIN,), None, 2)
    assert (moved.status.token_url, moved.token_url) == (urls["token_url"], urls["token_url"])
    assert kept is not None
    assert renewed is not None
    assert [one.credential.value for one in (kept, renewed)] == ["s3cr3t-canary", "new"]
    assert renewed.delegation == kept.delegation == moved.delegation


async def test_an_update_of_a_login_keeps_user_and_password(changes: Changes) -> None:
    """Ours: a password is changed without its user name, and a user name without its password (TEN-4)."""
    tenant, catalog, cache = changes.tenant.id, changes.catalog, _secrets(changes)
    login = make_credential("login", place=CredentialLocation.BASIC, username="ada", password="one")
    await CREDENTIALS.create(tenant, catalog, login, by=BY)

    updates: tuple[dict[str, Any], ...] = ({"password": "two", "username": "ada"}, {"username": "bob"})
    for members in updates:

        def revise(one: StoredCredential, members: dict[str, Any] = members) -> StoredCredential:
            return replace(one, **with_secrets(members))

        await CREDENTIALS.change(tenant, catalog, "login", revise, by=BY)

    found = await cache.named(tenant, "login")
    assert found is not None
    assert (found.credential.username, found.credential.value) == ("bob", "two")


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"origins": ("https://evil.example",)}, "/origins"),
        ({"origins": (ORIGIN, "https://evil.example")}, "/origins"),
        ({"kind": CredentialKind.ASSERTION, "audience": "x", "origins": ("https://evil.example",)}, None),
    ],
)
async def test_a_kept_secret_reaches_no_new_receiver(
    changes: Changes, change: dict[str, Any], pointer: str | None
) -> None:
    """Ours: without the secret, no change sends it elsewhere; a secret that is sent again may go there (TEN-4)."""
    tenant, catalog = changes.tenant.id, with_options(changes.catalog, public_url="https://gateway.example")
    await CREDENTIALS.create(tenant, catalog, BEARER, by=BY)

    if pointer is not None:
        with pytest.raises(InvalidBody) as refused:
            await CREDENTIALS.change(tenant, catalog, "token", lambda one: replace(one, **with_secrets(change)), by=BY)
        assert refused.value.faults[0].pointer == pointer
        found = await _secrets(changes).named(tenant, "token")
        assert found is not None
        assert found.origins == (ORIGIN,)
        change = {**change, "value": "known"}
    saved = await CREDENTIALS.change(tenant, catalog, "token", lambda one: replace(one, **with_secrets(change)), by=BY)
    assert "https://evil.example" in saved.origins
    if pointer is None:
        kept = await _secrets(changes).named(tenant, "token")
        assert kept is not None
        assert kept.credential.value == ""
