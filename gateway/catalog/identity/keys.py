"""API keys of a tenant: created, changed, rotated, revoked, deleted.

The text of a key is returned only when the key is created or rotated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.identity.admin_bounds import check_changed_key, check_ended_key, check_new_key
from gateway.catalog.identity.limits import MAX_KEYS
from gateway.catalog.kinds.profiles import PROFILES
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, announce, change
from gateway.domain.audit import OPERATOR_RULE
from gateway.domain.events import KeyChanged
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.keys import PEPPER_PURPOSE, Key, KeySecret, MintedKey, Scope, digest_key, mint_key
from gateway.domain.tenancy.principals import Principal
from gateway.errors import (
    Conflict,
    Fault,
    Forbidden,
    InvalidBody,
    LimitExceeded,
    NotFound,
    ReferenceMissing,
)
from gateway.store.engine import Db
from gateway.store.identity import accounts, keys
from gateway.store.kinds.singletons import ACCESS

_NO_OVERLAP = timedelta()
_END_OLD = "key.end_old_secret"
"""The audit action that only restricts a key; the bounds on the grants of admins do not apply to it."""
_OPERATORS = frozenset({Scope.PROVIDE})
"""Scopes that only the operator grants.

An owner key of a tenant has the scope `admin` and, from the operator, `approve`. It can grant both, but not `mcp`,
which its own scopes exclude. So no key of a tenant can create both a caller and its approver.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDraft:
    """A requested key."""

    name: str
    scopes: frozenset[Scope]
    profile: str | None = None
    subject: str | None = None
    expires_at: datetime | None = None


async def create_key(
    tenant: TenantId, catalog: CatalogContext, draft: KeyDraft, *, by: Author
) -> tuple[Key, MintedKey]:
    """Create a key and return it with its text.

    Raises:
        InvalidBody: the scopes exclude each other, or the expiry is in the past.
        ReferenceMissing: the tenant has no such profile.
        Forbidden: the author may not grant one of the scopes.
        LimitExceeded: the tenant has reached its limit of keys.
        NotFound: the tenant does not exist.
    """
    _check_draft(draft)
    _check_grant(by, draft.scopes)  # guard: key-scope-minted
    minted, now = mint_key(), datetime.now(UTC)
    key = Key(
        tenant=tenant,
        id=minted.id,
        name=draft.name,
        scopes=draft.scopes,
        subject=draft.subject or minted.id,
        profile=draft.profile,
        secret=_secret(catalog, minted),
        created_at=now,
        expires_at=draft.expires_at,
        revoked_at=None,
        version=1,
    )
    entry = CatalogChange(action="key.create", target=key.id)
    async with change(tenant, catalog, entry, by=by) as db:
        await _check_profile(tenant, db, draft.profile)
        if await keys.count(tenant, db) >= MAX_KEYS:  # guard: keys-capped
            raise LimitExceeded(f"the tenant has {MAX_KEYS} keys (the limit); delete revoked or unused ones")
        await check_new_key(tenant, db, key, by=by)
        entry.after = key = await _with_makers(tenant, db, key, by)
        await keys.insert(key, db)
    return key, minted


async def get_key(tenant: TenantId, catalog: CatalogContext, key: KeyId) -> Key:
    """The key with this id.

    Raises:
        NotFound: the tenant has no such key.
    """
    async with catalog.store.transaction(tenant) as db:
        return await _get(tenant, db, key)


async def has_approver(tenant: TenantId, catalog: CatalogContext, requester: str) -> bool:
    """True if a valid key of another subject, or a person, can approve this subject's calls."""
    async with catalog.store.transaction(tenant) as db:
        is_by_key = await keys.granted_to_others(tenant, db, Scope.APPROVE, besides=requester, limit=1)
        return bool(is_by_key or (await ACCESS.get(tenant, db)).approvers)


async def approving_keys(
    tenant: TenantId, catalog: CatalogContext, requester: str, *, limit: int
) -> Sequence[tuple[KeyId, str]]:
    """Ids and names of the valid keys that can approve this subject's calls, the oldest first."""
    async with catalog.store.transaction(tenant) as db:
        return await keys.granted_to_others(tenant, db, Scope.APPROVE, besides=requester, limit=limit)


async def page_keys(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[Key]:
    """One page of the tenant's keys, by default sorted by id."""
    async with catalog.store.transaction(tenant) as db:
        return await keys.page(tenant, db, after=after, limit=limit, order=order)


async def update_key(
    tenant: TenantId,
    catalog: CatalogContext,
    key: KeyId,
    revise: Callable[[Key], Key],
    *,
    by: Author,
    expected: Expected = None,
) -> Key:
    """Replace a key with the one that `revise` returns; callers change its name or expiry.

    Raises:
        NotFound: the tenant has no key with this id.
        InvalidBody: the new expiry is in the past.
        Forbidden: the key has a scope that the author may not grant.
        PreconditionFailed: the current version matches no expected tag.
    """

    def checked(current: Key) -> Key:
        _check_grant(by, current.scopes)  # guard: key-scope-prolonged
        revised = revise(current)
        if revised.expires_at != current.expires_at:
            _check_end(revised.expires_at)
        return revised

    return await _save(
        tenant, catalog, CatalogChange(action="key.update", target=key), checked, by=by, expected=expected
    )


async def rotate_key(
    tenant: TenantId,
    catalog: CatalogContext,
    key: KeyId,
    *,
    overlap: timedelta = _NO_OVERLAP,
    by: Author,
    expected: Expected = None,
) -> tuple[Key, MintedKey]:
    """Rotate a key: its secret changes, its id and subject do not.

    The old secret ends after the overlap, by default at once.

    Raises:
        NotFound: the tenant has no key with this id.
        Conflict: the key is revoked, or has two secrets already and would get a third one.
        Forbidden: the key has a scope that the author may not grant.
        PreconditionFailed: the current version matches no expected tag.
    """
    minted, entry = mint_key(key=key), CatalogChange(action="key.rotate", target=key)

    def renew(current: Key) -> Key:
        _check_grant(by, current.scopes)  # the author is shown the key's new text  # guard: key-scope-rotated
        if current.revoked_at is not None:
            raise Conflict("the key was revoked; create another")
        if not overlap:
            return replace(current, secret=_secret(catalog, minted, after=current), former=None)
        _check_room(current)  # guard: key-two-secrets
        ends_at = datetime.now(UTC) + overlap
        entry.detail = {"old_secret_until": ends_at.isoformat()}
        former = replace(current.secret, ends_at=ends_at)
        return replace(current, secret=_secret(catalog, minted, after=current), former=former)

    return await _save(tenant, catalog, entry, renew, by=by, expected=expected), minted


async def end_old_secret(
    tenant: TenantId, catalog: CatalogContext, key: KeyId, *, by: Author, expected: Expected = None
) -> Key:
    """End the former secret of a key now, if it has one.

    Raises:
        NotFound: the tenant has no key with this id.
        PreconditionFailed: the current version matches no expected tag.
    """

    def end(current: Key) -> Key:
        return replace(current, former=None)

    entry = CatalogChange(action=_END_OLD, target=key)
    return await _save(tenant, catalog, entry, end, by=by, expected=expected)


async def revoke_key(
    tenant: TenantId, catalog: CatalogContext, key: KeyId, *, by: Author, expected: Expected = None
) -> Key:
    """Revoke a key permanently. A second revocation does not change the time of the first.

    Raises:
        NotFound: the tenant has no key with this id.
        PreconditionFailed: the current version matches no expected tag.
    """

    def end(current: Key) -> Key:
        return replace(current, revoked_at=current.revoked_at or datetime.now(UTC))

    return await _save(tenant, catalog, CatalogChange(action="key.revoke", target=key), end, by=by, expected=expected)


async def delete_key(
    tenant: TenantId, catalog: CatalogContext, key: KeyId, *, by: Author, expected: Expected = None
) -> None:
    """Delete the key.

    Raises:
        NotFound: the tenant has no key with this id.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="key.delete", target=key)
    async with change(tenant, catalog, entry, by=by) as db:
        entry.before = current = await _get(tenant, db, key)
        check_version(current, expected)
        await check_ended_key(tenant, db, current, by=by)
        await keys.remove(tenant, db, key)
    await announce(catalog, KeyChanged(tenant=tenant, key=key, is_ended=True))


async def _save(
    tenant: TenantId,
    catalog: CatalogContext,
    entry: CatalogChange,
    revise: Callable[[Key], Key],
    *,
    by: Author,
    expected: Expected,
) -> Key:
    key = KeyId(entry.target)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _get(tenant, db, key)
        check_version(current, expected)
        revised = revise(current)
        if revised.revoked_at is not None:
            await check_ended_key(tenant, db, current, by=by)
            await accounts.remove_of(tenant, db, key)  # guard: account-of-revoked-key
        elif entry.action != _END_OLD:
            await check_changed_key(tenant, db, current, revised, by=by)
        if revised.secret != current.secret:
            revised = await _with_makers(tenant, db, revised, by)
        entry.before, entry.after = current, revised
        await keys.save(revised, db)
        saved = await _get(tenant, db, key)
    secret_numbers = tuple(secret.number for secret in saved.secrets)
    await announce(
        catalog, KeyChanged(tenant=tenant, key=key, is_ended=saved.revoked_at is not None, kept=secret_numbers)
    )
    return saved


def _secret(catalog: CatalogContext, minted: MintedKey, *, after: Key | None = None) -> KeySecret:
    """The next secret of a key: a digest of its text, which is stored instead of the text."""
    digest = digest_key(minted.text, catalog.sealer.derive(PEPPER_PURPOSE))
    number = 1 if after is None else after.secret.number + 1
    return KeySecret(digest=digest, pepper=catalog.sealer.names[0], number=number)


async def _with_makers(tenant: TenantId, db: Db, key: Key, by: Author) -> Key:
    """Return the key with the principals that may know its new secret.

    A person who makes a key with the scope `admin` can make further keys with it, so the makers of a key include the
    people behind the key of its author.
    """
    caller = by.caller
    own = await keys.get(tenant, db, caller.key) if isinstance(caller, Principal) else None
    behind = [maker for maker in own.makers if maker.startswith("user:")] if own else []  # guard: key-makers-behind
    return replace(key, secret=replace(key.secret, made_by=(caller.name, *behind)))


def _check_room(current: Key) -> None:
    *_, former = current.secrets
    if former.ends_at is not None:
        message = f"the key has two secrets until {former.ends_at.isoformat(timespec='seconds')}, which is the limit"
        raise Conflict(f"{message}; end the old one (end-old-secret), or rotate without an overlap")


async def _get(tenant: TenantId, db: Db, key: KeyId) -> Key:
    found = await keys.get(tenant, db, key)
    if found is None or found.issuer is not None:  # guard: person-no-key
        raise NotFound("no such key")
    return found


def _check_draft(draft: KeyDraft) -> None:
    if draft.scopes >= {Scope.MCP, Scope.APPROVE}:
        fault = Fault(pointer="/scopes", reason="mcp and approve exclude each other: no key may approve its own calls")
        raise InvalidBody(f"scopes: {fault.reason}", faults=[fault])
    _check_end(draft.expires_at)


def _check_grant(by: Author, scopes: frozenset[Scope]) -> None:
    """Allow the operator every scope, and a tenant's key its own scopes except those reserved for the operator.

    Raises:
        Forbidden: the author may not grant one of the scopes.
    """
    caller = by.caller
    if not isinstance(caller, Principal):
        return
    if reserved := sorted(scopes & _OPERATORS):  # guard: key-scope-operators
        raise Forbidden(f"only the operator grants the scope {', '.join(reserved)}", rule=OPERATOR_RULE)
    if missing := sorted(scopes - caller.scopes):
        raise Forbidden(f"the key lacks the scope {', '.join(missing)} and cannot grant it; ask the operator")


async def _check_profile(tenant: TenantId, db: Db, profile: str | None) -> None:
    if profile is not None and not await PROFILES.exists(tenant, db, profile):
        fault = Fault(pointer="/profile", reason="the tenant has no such profile")
        raise ReferenceMissing(f"profile: {fault.reason}", faults=[fault])


def _check_end(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= datetime.now(UTC):
        fault = Fault(pointer="/expires_at", reason="must be in the future")
        raise InvalidBody(f"expires_at: {fault.reason}", faults=[fault])
