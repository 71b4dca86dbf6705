"""Issuers of a tenant: creation, changes and removal; what is fetched is in `issuer_drafts`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.identity import introspection_clients
from gateway.catalog.identity.admin_bounds import check_issuers
from gateway.catalog.identity.client_secrets import NOT_STORED
from gateway.catalog.identity.issuer_drafts import (
    IssuerDraft,
    PreparedIssuer,
    check_author,
    described,
    draft_of,
    prepare,
)
from gateway.catalog.identity.issuer_keys import FoundKeys, keep_keys
from gateway.catalog.identity.limits import MAX_ANNOUNCED
from gateway.catalog.kinds.engines.hand_changes import note_hand_change
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, OpenChanges, open_changes
from gateway.domain.events import IssuerChanged, KeyChanged
from gateway.domain.identifiers import KeyId, TenantId, new_issuer_id
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.issuers import AdmissionRule, Issuer
from gateway.errors import (
    Conflict,
    Fault,
    FetchFailed,
    GatewayError,
    LimitExceeded,
    NameConflict,
    NameTaken,
    NotFound,
    ReferenceMissing,
)
from gateway.kinds.identity import ISSUER, MAX_ISSUERS
from gateway.store.engine import Db
from gateway.store.identity import issuers, people
from gateway.store.kinds import ownership
from gateway.store.kinds.profiles import PROFILES
from gateway.upstream.auth.key_sets import fetch_key_set

_CHANGED = "the issuer was changed by another request; read it, and send the change again"


async def create_issuer(tenant: TenantId, catalog: CatalogContext, draft: IssuerDraft, *, by: Author) -> Issuer:
    """Create an issuer.

    Raises:
        InvalidBody: a URL is not https and not permitted, or metadata or keys cannot be read, or people cannot sign in
            with the client, or the introspection of tokens fails.
        ReferenceMissing: the tenant has no profile that a rule names.
        Forbidden: the author may not admit people, or names audiences without being the operator.
        NameTaken: the tenant has an issuer of this name or URL.
        LimitExceeded: the tenant has reached its limit of issuers.
    """
    prepared = await prepare(tenant, catalog, draft, by=by)
    async with open_changes(tenant, catalog, by=by) as opened:
        return await write_new(opened, prepared)


async def update_issuer(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    revise: Callable[[IssuerDraft], IssuerDraft],
    *,
    by: Author,
    expected: Expected = None,
) -> Issuer:
    """Replace an issuer with the one that `revise` returns, with the same name and URL; read its metadata again.

    The sessions and streams of its people end; the new rules apply to their next request. Cached signing keys end too.

    Raises:
        NotFound: the tenant has no such issuer.
        InvalidBody, ReferenceMissing, Forbidden: as for a new issuer.
        PreconditionFailed: the current version matches no expected tag.
    """
    before = await get_issuer(tenant, catalog, name)
    prepared = await prepare(tenant, catalog, revise(draft_of(before)), before, by=by)
    async with open_changes(tenant, catalog, by=by) as opened:
        await opened.lock()
        current = await _find(tenant, opened.db, before.id, locked=True)
        check_version(current, expected)
        if current.version != before.version:
            prepared = _after_race(prepared, revise(draft_of(current)), before, current, by=by)
        return await write_change(opened, prepared, current)


async def write_new(opened: OpenChanges, prepared: PreparedIssuer) -> Issuer:
    """Create an issuer in open changes; see `create_issuer`."""
    tenant, draft, now = opened.tenant, prepared.draft, datetime.now(UTC)
    new = Issuer(id=new_issuer_id(), version=1, created_at=now, updated_at=now, **_members(prepared))
    entry = CatalogChange(action="issuer.create", target=new.name, detail={"id": new.id}, after=new)
    async with opened.one(entry) as db:
        await check_issuers(tenant, db, new.name, by=opened.by)
        if await issuers.count(tenant, db) >= MAX_ISSUERS:  # guard: issuers-bounded
            raise LimitExceeded(f"the tenant has {MAX_ISSUERS} issuers (the limit); delete unused ones")
        await _check_free(tenant, db, draft)
        await _check_stored(tenant, db, new)
        await issuers.insert(tenant, db, new)
        await _save_secrets(opened, draft, new)
    _keep_keys_later(opened, new, prepared.keys)
    return new


async def write_change(opened: OpenChanges, prepared: PreparedIssuer, current: Issuer) -> Issuer:
    """Replace an issuer in open changes; see `update_issuer`. The caller holds the lock of the tenant.

    `prepared` follows from the current issuer.
    """
    tenant, now = opened.tenant, datetime.now(UTC)
    saved = replace(current, **_members(prepared), version=current.version + 1, updated_at=now)
    entry = CatalogChange(action="issuer.update", target=saved.name, detail={"id": saved.id})
    entry.before, entry.after = current, saved
    async with opened.one(entry) as db:
        # rules of roles contain its name, and `name` may be its id
        await check_issuers(tenant, db, current.name, by=opened.by)  # guard: role-issuer-named
        await _check_stored(tenant, db, saved)
        await issuers.save(tenant, db, saved)
        await _save_secrets(opened, prepared.draft, saved, before=current)
        affected = await people.ids_of_issuer(tenant, db, saved.id, limit=MAX_ANNOUNCED)
        await note_hand_change(opened, entry, ISSUER.name, saved.id)
    _announce(opened, affected)
    _keep_keys_later(opened, saved, prepared.keys)
    return saved


async def write_removal(opened: OpenChanges, current: Issuer) -> None:
    """Remove an issuer in open changes; see `remove_issuer`. The caller holds the lock of the tenant."""
    tenant = opened.tenant
    entry = CatalogChange(action="issuer.delete", target=current.name, detail={"id": current.id}, before=current)
    async with opened.one(entry) as db:
        await check_issuers(tenant, db, current.name, by=opened.by)  # guard: role-issuer-deleted
        affected = await people.ids_of_issuer(tenant, db, current.id, limit=MAX_ANNOUNCED)
        await issuers.remove(tenant, db, current.id)
        await note_hand_change(opened, entry, ISSUER.name, current.id)
        await ownership.remove(tenant, db, ISSUER.name, current.id)
    _announce(opened, affected, is_ended=True)


async def set_issuer(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    revise: Callable[[IssuerDraft], IssuerDraft],
    *,
    by: Author,
    expected: Expected = None,
) -> Issuer:
    """Replace an issuer, as `update_issuer` does; one that would not change is left as it is, with its sessions."""
    before = await get_issuer(tenant, catalog, name)
    if not _is_changed(revise(draft_of(before)), before):
        check_version(before, expected)
        return before
    return await update_issuer(tenant, catalog, name, revise, by=by, expected=expected)


async def refresh_keys(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> Issuer:
    """Drop the cached signing keys of an issuer on all replicas, then fetch them again; sessions of its people end.

    Raises:
        NotFound, Forbidden, PreconditionFailed: as for a change of the issuer; nothing was dropped.
        FetchFailed: the keys were dropped, and cannot be fetched now.
    """
    issuer = await update_issuer(tenant, catalog, name, lambda draft: draft, by=by, expected=expected)
    if issuer.enabled and issuer.jwks_url:
        try:
            found = await fetch_key_set(catalog.upstream, tenant, issuer.jwks_url)
        except GatewayError as error:
            raise FetchFailed(
                f"The cached keys were dropped; new ones cannot be fetched now: {error.message}"
            ) from None
        keep_keys(tenant, catalog, issuer, FoundKeys(issuer.jwks_url, found))
    return issuer


def _after_race(
    prepared: PreparedIssuer, revised: IssuerDraft, before: Issuer, current: Issuer, *, by: Author
) -> PreparedIssuer:
    """Return what to store if another request changed the issuer while this one fetched.

    Raises:
        Conflict: both requests change a client or the URL of the keys, or enable or disable the issuer.
    """
    if (current.sign_in, current.introspection) != (before.sign_in, before.introspection):
        raise Conflict(_CHANGED)
    check_author(by, frozenset(revised.audiences) - frozenset(current.audiences))
    keys = prepared.keys
    if (revised.jwks_url or "", revised.enabled) == (current.jwks_url, current.enabled):
        keys = keys._replace(url=current.jwks_url)
    elif (current.jwks_url, current.enabled) != (before.jwks_url, before.enabled):
        raise Conflict(_CHANGED)
    draft = replace(revised, introspection=prepared.draft.introspection)
    return replace(prepared, draft=draft, keys=keys)


async def get_issuer(tenant: TenantId, catalog: CatalogContext, name: str) -> Issuer:
    """The issuer of this name or id.

    Raises:
        NotFound: the tenant has no such issuer.
    """
    async with catalog.store.transaction(tenant) as db:
        return await _find(tenant, db, name)


async def page_issuers(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[Issuer]:
    """One page of the tenant's issuers, by default sorted by name."""
    async with catalog.store.transaction(tenant) as db:
        return await issuers.page(tenant, db, after=after, limit=limit, order=order)


async def remove_issuer(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Delete an issuer with its people, the denied ones included; their sessions end.

    Raises:
        NotFound: the tenant has no such issuer.
        Forbidden: as for a change of the issuer, because roles of its people end.
        PreconditionFailed: the current version matches no expected tag.
    """
    async with open_changes(tenant, catalog, by=by) as opened:
        await opened.lock()
        current = await _find(tenant, opened.db, name, locked=True)
        check_version(current, expected)
        await write_removal(opened, current)


def _announce(opened: OpenChanges, affected: Sequence[KeyId], *, is_ended: bool = False) -> None:
    opened.announce(IssuerChanged(tenant=opened.tenant))  # guard: issuer-change-announced
    opened.announce(*(KeyChanged(tenant=opened.tenant, key=person, is_ended=is_ended) for person in affected))


def _keep_keys_later(opened: OpenChanges, issuer: Issuer, found: FoundKeys) -> None:
    """Put the fetched keys in place after the commit and its events, which drop the former ones."""

    async def keep() -> None:
        keep_keys(opened.tenant, opened.catalog, issuer, found)

    opened.later.append(keep)


async def _find(tenant: TenantId, db: Db, name: str, *, locked: bool = False) -> Issuer:
    found = await issuers.get(tenant, db, name, locked=locked)
    if found is None:
        raise NotFound("no such issuer")
    return found


async def _check_stored(tenant: TenantId, db: Db, issuer: Issuer) -> None:
    """Check what depends on other stored objects: the profiles of rules, and other issuers of opaque tokens."""
    await _check_profiles(tenant, db, issuer.rules)
    if issuer.enabled and issuer.introspects("opaque"):
        others = await issuers.page(tenant, db, after=None, limit=MAX_ISSUERS)
        introspection_clients.check_alone([other for other in others if other.id != issuer.id])


async def _save_secrets(
    opened: OpenChanges, draft: IssuerDraft, issuer: Issuer, *, before: Issuer | None = None
) -> None:
    """Store the secrets of the clients. An unchanged one is sealed again if the token endpoint changes."""
    tenant, catalog, db = opened.tenant, opened.catalog, opened.db
    await introspection_clients.save_introspection_secret(tenant, catalog, db, draft.introspection, issuer=issuer)
    secret = None if draft.sign_in is None else draft.sign_in.secret
    if issuer.sign_in is not None and issuer.sign_in.client_secret_reference is not None:
        secret = NOT_STORED
    elif secret is None and issuer.sign_in is not None and before is not None:
        if before.sign_in is None or issuer.sign_in.token_url == before.sign_in.token_url:
            return
        secret = await issuers.open_secret(tenant, db, catalog.sealer, before)
    await issuers.save_secret(tenant, db, catalog.sealer, issuer, secret=secret)


async def _check_free(tenant: TenantId, db: Db, draft: IssuerDraft) -> None:
    for pointer, value, found in (
        ("name", draft.name, await issuers.get(tenant, db, draft.name)),
        ("url", draft.url, await issuers.find_url(tenant, db, draft.url)),
    ):
        if found is not None:
            conflict = NameConflict(name=value, owner=f"issuer:{found.name}")
            raise NameTaken(f"there is an issuer with this {pointer} already", conflicts=[conflict])


async def _check_profiles(tenant: TenantId, db: Db, rules: Sequence[AdmissionRule]) -> None:
    for index, rule in enumerate(rules):
        for position, profile in enumerate(rule.profiles or ()):
            if profile != "default" and await PROFILES.get(tenant, db, profile) is None:
                fault = Fault(pointer=f"/rules/{index}/profiles/{position}", reason="the tenant has no such profile")
                raise ReferenceMissing(f"{fault.pointer}: {fault.reason}", faults=[fault])


def _members(prepared: PreparedIssuer) -> dict[str, Any]:
    """The members of the issuer to store."""
    introspection = prepared.draft.introspection
    own: dict[str, Any] = {name: getattr(prepared.draft, name) for name in IssuerDraft.__slots__}
    inspected = None if introspection is None else introspection.client
    return own | {"jwks_url": prepared.keys.url, "sign_in": prepared.client, "introspection": inspected}


def _is_changed(draft: IssuerDraft, before: Issuer) -> bool:
    """True if a draft changes an issuer or gives a secret."""
    clients = (draft.sign_in, draft.introspection)
    return any(client is not None and client.secret for client in clients) or described(draft, before) != before
