"""Issuers of a tenant: creation, changes and removal.

When an issuer is created or enabled, or its key URL changes, metadata and keys are fetched. So a typing error is found
at once instead of at the first sign-in. A disabled issuer is not fetched.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.identity import introspection_clients, sign_in_clients
from gateway.catalog.identity.admin_bounds import check_issuers
from gateway.catalog.identity.client_secrets import NOT_STORED, settle_reference
from gateway.catalog.identity.introspection_clients import IntrospectionDraft, IssuerPlace
from gateway.catalog.identity.issuer_keys import FoundKeys, find_keys, keep_keys
from gateway.catalog.identity.limits import MAX_ANNOUNCED
from gateway.catalog.identity.sign_in_clients import SignInDraft
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, announce, change
from gateway.domain.audit import OPERATOR_RULE
from gateway.domain.events import IssuerChanged, KeyChanged
from gateway.domain.identifiers import KeyId, TenantId, new_issuer_id
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.issuers import AdmissionRule, Issuer, SignInClient
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Principal
from gateway.errors import (
    Conflict,
    Fault,
    FetchFailed,
    Forbidden,
    GatewayError,
    LimitExceeded,
    NameConflict,
    NameTaken,
    NotFound,
    ReferenceMissing,
)
from gateway.kinds.identity import MAX_ISSUERS
from gateway.store.engine import Db
from gateway.store.identity import issuers, people
from gateway.store.kinds.profiles import PROFILES
from gateway.upstream.auth.key_sets import fetch_key_set

_CHANGED = "the issuer was changed by another request; read it, and send the change again"


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerDraft:
    """A requested issuer; without `jwks_url`, the issuer's metadata contains the URL of its keys."""

    name: str
    url: str
    rules: tuple[AdmissionRule, ...]
    algorithms: tuple[str, ...]
    subject_claim: str
    groups_claim: str
    max_lifetime_s: int
    enabled: bool = True
    jwks_url: str | None = None
    audiences: tuple[str, ...] = ()
    sign_in: SignInDraft | None = None
    introspection: IntrospectionDraft | None = None
    requires_dpop: bool = False


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
    _check_author(by, draft.audiences)
    keys = await find_keys(tenant, catalog, draft) if draft.enabled else FoundKeys(draft.jwks_url or "")
    draft = await _find_introspection(tenant, catalog, draft, by=by)
    now = datetime.now(UTC)
    members: dict[str, Any] = {
        **_members(draft),
        "jwks_url": keys.url,
        "sign_in": await _find_client(tenant, catalog, draft, by=by),
    }
    new_issuer = Issuer(id=new_issuer_id(), version=1, created_at=now, updated_at=now, **members)
    entry = CatalogChange(action="issuer.create", target=draft.name, detail={"id": new_issuer.id}, after=new_issuer)
    async with change(tenant, catalog, entry, by=by) as db:
        await check_issuers(tenant, db, draft.name, by=by)
        if await issuers.count(tenant, db) >= MAX_ISSUERS:  # guard: issuers-bounded
            raise LimitExceeded(f"the tenant has {MAX_ISSUERS} issuers (the limit); delete unused ones")
        await _check_free(tenant, db, draft)
        await _check_profiles(tenant, db, draft.rules)
        await _check_introspection(tenant, db, new_issuer)
        await issuers.insert(tenant, db, new_issuer)
        await _save_secret(tenant, catalog, db, draft, issuer=new_issuer)
        await introspection_clients.save_introspection_secret(
            tenant, catalog, db, draft.introspection, issuer=new_issuer
        )
    keep_keys(tenant, catalog, new_issuer, keys)
    return new_issuer


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
    revised = revise(_draft_of(before))
    _check_author(by, frozenset(revised.audiences) - frozenset(before.audiences))
    keys = FoundKeys(before.jwks_url)
    if not revised.enabled:
        keys = FoundKeys(revised.jwks_url or "")
    elif not (before.enabled and revised.jwks_url == before.jwks_url):
        keys = await find_keys(tenant, catalog, revised)
    client = await _find_client(tenant, catalog, revised, before, by=by)
    revised = await _find_introspection(tenant, catalog, revised, before, by=by)
    introspection = revised.introspection
    entry = CatalogChange(action="issuer.update", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, before.id, locked=True)
        # rules of roles contain its name, and `name` may be its id
        await check_issuers(tenant, db, current.name, by=by)  # guard: role-issuer-named
        check_version(current, expected)
        if current.version != before.version:
            if (current.sign_in, current.introspection) != (before.sign_in, before.introspection):
                raise Conflict(_CHANGED)
            revised = replace(revise(_draft_of(current)), introspection=introspection)
            _check_author(by, frozenset(revised.audiences) - frozenset(current.audiences))
            keys = keys._replace(url=_keys_after_race(revised, before, current) or keys.url)
        await _check_profiles(tenant, db, revised.rules)
        members = _members(revised) | {"jwks_url": keys.url, "sign_in": client}
        saved = replace(current, **members, version=current.version + 1, updated_at=datetime.now(UTC))
        entry.target, entry.detail = saved.name, {"id": saved.id}
        entry.before, entry.after = current, saved
        await _check_introspection(tenant, db, saved)
        await issuers.save(tenant, db, saved)
        await _save_secret(tenant, catalog, db, revised, issuer=saved, before=current)
        await introspection_clients.save_introspection_secret(tenant, catalog, db, introspection, issuer=saved)
        affected = await people.ids_of_issuer(tenant, db, saved.id, limit=MAX_ANNOUNCED)
    await _announce(tenant, catalog, affected)
    keep_keys(tenant, catalog, saved, keys)
    return saved


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
    if not _is_changed(revise(_draft_of(before)), before):
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


def _keys_after_race(revised: IssuerDraft, before: Issuer, current: Issuer) -> str | None:
    """Return the URL of the keys that another request stored meanwhile; None if this request alone changes it.

    Raises:
        Conflict: both requests change the URL, or enable or disable the issuer.
    """
    if (revised.jwks_url or "", revised.enabled) == (current.jwks_url, current.enabled):
        return current.jwks_url
    if (current.jwks_url, current.enabled) != (before.jwks_url, before.enabled):
        raise Conflict(_CHANGED)
    return None


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
    entry = CatalogChange(action="issuer.delete", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, name, locked=True)
        await check_issuers(tenant, db, current.name, by=by)  # guard: role-issuer-deleted
        check_version(current, expected)
        entry.target, entry.detail, entry.before = current.name, {"id": current.id}, current
        affected = await people.ids_of_issuer(tenant, db, current.id, limit=MAX_ANNOUNCED)
        await issuers.remove(tenant, db, current.id)
    await _announce(tenant, catalog, affected, is_ended=True)


async def _announce(
    tenant: TenantId, catalog: CatalogContext, affected: Sequence[KeyId], *, is_ended: bool = False
) -> None:
    await announce(catalog, IssuerChanged(tenant=tenant))  # guard: issuer-change-announced
    for person in affected:
        await announce(catalog, KeyChanged(tenant=tenant, key=person, is_ended=is_ended))


async def _find(tenant: TenantId, db: Db, name: str, *, locked: bool = False) -> Issuer:
    found = await issuers.get(tenant, db, name, locked=locked)
    if found is None:
        raise NotFound("no such issuer")
    return found


def _check_author(by: Author, audiences: Sequence[str] | frozenset[str]) -> None:
    """Only the operator may name audiences, because tokens of other resources become valid here."""
    caller = by.caller
    if not isinstance(caller, Principal):
        return
    if Scope.MCP not in caller.scopes:  # guard: issuer-author-grants
        raise Forbidden("the key lacks the scope mcp and cannot admit people; ask the operator")
    if audiences:  # guard: issuer-audiences-operator
        raise Forbidden("only the operator names audiences", rule=OPERATOR_RULE)


async def _find_introspection(
    tenant: TenantId, catalog: CatalogContext, draft: IssuerDraft, before: Issuer | None = None, *, by: Author
) -> IssuerDraft:
    """Return the draft with the endpoint of its introspection client."""
    if draft.introspection is None:
        return draft
    issuer = IssuerPlace(url=draft.url, enabled=draft.enabled, before=before)
    found = await introspection_clients.find_introspection(tenant, catalog, draft.introspection, issuer, by=by)
    return replace(draft, introspection=found)


async def _check_introspection(tenant: TenantId, db: Db, issuer: Issuer) -> None:
    if issuer.enabled and issuer.introspects("opaque"):
        others = await issuers.page(tenant, db, after=None, limit=MAX_ISSUERS)
        introspection_clients.check_alone([other for other in others if other.id != issuer.id])


async def _find_client(
    tenant: TenantId, catalog: CatalogContext, draft: IssuerDraft, before: Issuer | None = None, *, by: Author
) -> SignInClient | None:
    """Return the gateway's client at the issuer, with its endpoints as soon as the issuer is enabled."""
    wanted, stored = draft.sign_in, None if before is None else before.sign_in
    if wanted is None:
        return None
    sign_in_clients.check_draft(wanted, draft.audiences)
    client = settle_reference(catalog, wanted.client, wanted.secret, stored=stored, pointer="/sign_in", by=by)
    wanted = replace(wanted, client=client)
    if draft.enabled and sign_in_clients.is_changed(wanted, before):
        return await sign_in_clients.find_endpoints(tenant, catalog, wanted, draft.url)
    return sign_in_clients.described(wanted, stored)


async def _save_secret(
    tenant: TenantId,
    catalog: CatalogContext,
    db: Db,
    draft: IssuerDraft,
    *,
    issuer: Issuer,
    before: Issuer | None = None,
) -> None:
    """Store the secret of the issuer's client. An unchanged secret is sealed again if the token endpoint changes."""
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


def _members(draft: IssuerDraft) -> dict[str, Any]:
    members = {name: getattr(draft, name) for name in IssuerDraft.__slots__}
    return members | {"introspection": None if draft.introspection is None else draft.introspection.client}


def _is_changed(draft: IssuerDraft, before: Issuer) -> bool:
    """True if a draft changes an issuer or gives a secret; the endpoints of its clients are no part of a draft."""
    sign_in, introspection = draft.sign_in, draft.introspection
    if (sign_in is not None and sign_in.secret) or (introspection is not None and introspection.secret):
        return True
    client = None if sign_in is None else sign_in_clients.described(sign_in, before.sign_in)
    inspected = None if introspection is None else introspection.client
    if inspected is not None and before.introspection is not None:
        inspected = replace(inspected, url=before.introspection.url)
    members = {**_members(draft), "sign_in": client, "introspection": inspected, "jwks_url": draft.jwks_url or ""}
    return replace(before, **members) != before


def _draft_of(issuer: Issuer) -> IssuerDraft:
    members: dict[str, Any] = {name: getattr(issuer, name) for name in IssuerDraft.__slots__}
    members["jwks_url"] = issuer.jwks_url or None
    members["sign_in"] = sign_in_clients.draft_of(issuer.sign_in)
    members["introspection"] = introspection_clients.draft_of(issuer.introspection)
    return IssuerDraft(**members)
