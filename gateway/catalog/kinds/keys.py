"""API keys of a tenant: checks of scopes and lifetimes, rotation with an overlap, revocation.

The text of a key is returned only when the key is created or rotated.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from gateway.catalog.etags import Expected, check_tag
from gateway.catalog.identity.admin_bounds import check_changed_key, check_ended_key, check_new_key
from gateway.catalog.kinds.engines.hand_changes import note_hand_change
from gateway.catalog.kinds.engines.minting_collection import MintingCollection
from gateway.catalog.kinds.profiles import PROFILES
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, OpenChanges, open_changes
from gateway.domain.audit import OPERATOR_RULE
from gateway.domain.events import KeyChanged
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.keys import PEPPER_PURPOSE, Key, KeySecret, MintedKey, Scope, digest_key, mint_key
from gateway.domain.tenancy.principals import Principal
from gateway.errors import Conflict, Fault, Forbidden, InvalidBody, ReferenceMissing
from gateway.kinds.identity import KEY
from gateway.store.engine import Db
from gateway.store.identity import accounts, keys
from gateway.store.kinds import ownership
from gateway.store.kinds.keys import KEYS as ROWS

_NO_OVERLAP = timedelta()
_OPERATORS = frozenset({Scope.PROVIDE})
"""Scopes that only the operator grants.

An owner key of a tenant has the scope `admin` and, from the operator, `approve`. It can grant both, but not `mcp`,
which its own scopes exclude. So no key of a tenant can create both a caller and its approver.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCollection(MintingCollection[Key]):
    """The keys, each with a digest of its secret, and during an overlap with that of the former one."""

    async def rotate_with_overlap(
        self,
        tenant: TenantId,
        catalog: CatalogContext,
        key: str,
        overlap: timedelta,
        *,
        by: Author,
        expected: Expected = None,
    ) -> tuple[Key, str]:
        """As `rotate`; the old secret ends after the overlap.

        Raises:
            Conflict: the key is revoked, or has two secrets already and would get a third one.
            Forbidden: the key has a scope that the author may not grant.
            GatewayError: as for `rotate`.
        """
        renew = partial(_renew, overlap=overlap)
        return await self.rotate_by(tenant, catalog, key, renew, by=by, expected=expected)

    async def end_old_secret(
        self, tenant: TenantId, catalog: CatalogContext, key: str, *, by: Author, expected: Expected = None
    ) -> Key:
        """End the former secret of a key now, if it has one.

        Raises:
            NotFound: the tenant has no key with this id.
            PreconditionFailed: the current version matches no expected tag.
        """

        def end(current: Key) -> Key:
            return replace(current, former=None)

        entry = CatalogChange(action="key.end_old_secret", target=key)
        return await self._restrict(tenant, catalog, entry, end, by=by, expected=expected)

    async def revoke(
        self, tenant: TenantId, catalog: CatalogContext, key: str, *, by: Author, expected: Expected = None
    ) -> Key:
        """Revoke a key permanently. A second revocation does not change the time of the first.

        Raises:
            NotFound: the tenant has no key with this id.
            Conflict: it is the last key with the scope `admin`.
            PreconditionFailed: the current version matches no expected tag.
        """

        def end(current: Key) -> Key:
            return replace(current, revoked_at=current.revoked_at or datetime.now(UTC))

        entry = CatalogChange(action="key.revoke", target=key)
        return await self._restrict(tenant, catalog, entry, end, by=by, expected=expected)

    async def insert(self, opened: OpenChanges, new: Key) -> None:
        """Store a new key with the digest of a generated text."""
        minted = mint_key(key=KeyId(new.id))
        opened.generated[new.id] = minted.text
        secret = replace(digested(opened.catalog, minted), made_by=new.secret.made_by)
        await self.rows.insert(opened.tenant, opened.db, replace(new, secret=secret))

    async def renew(self, opened: OpenChanges, current: Key) -> tuple[Key, str]:
        """Store another secret; the previous one ends at once."""
        return await _renew(opened, current, overlap=_NO_OVERLAP)

    async def _restrict(
        self,
        tenant: TenantId,
        catalog: CatalogContext,
        entry: CatalogChange,
        revise: Callable[[Key], Key],
        *,
        by: Author,
        expected: Expected,
    ) -> Key:
        """Store a key that can do less. The bounds on the grants of admins do not apply.

        A revoked key belongs to no set of manifests: these name active keys only.
        """
        async with open_changes(tenant, catalog, by=by) as opened, opened.one(entry) as db:
            current = await self.find(tenant, db, entry.target, locked=True)
            check_tag(self.tag(current), expected)
            revised = revise(current)
            if revised.revoked_at is not None:
                await check_ended_key(tenant, db, current, by=by)
                await accounts.remove_of(tenant, db, current.id)  # guard: account-of-revoked-key
                await note_hand_change(opened, entry, KEY.name, current.id)
                await ownership.remove(tenant, db, KEY.name, current.id)
            entry.before, entry.after = current, revised
            await self.rows.save(tenant, db, revised)
            _announce(opened, revised)
            return await self.find(tenant, db, current.id)


async def _renew(opened: OpenChanges, current: Key, *, overlap: timedelta) -> tuple[Key, str]:
    _check_grant(opened.by, current.scopes)  # the author is shown the key's new text  # guard: key-scope-rotated
    if current.revoked_at is not None:
        raise Conflict("the key was revoked; create another")
    former = None
    if overlap:
        _check_room(current)  # guard: key-two-secrets
        former = replace(current.secret, ends_at=datetime.now(UTC) + overlap)
        opened.detail("old_secret_until", former.ends_at.isoformat() if former.ends_at else None)
    minted = mint_key(key=KeyId(current.id))
    made_by = await _makers(opened)
    secret = replace(digested(opened.catalog, minted, after=current), made_by=made_by)
    revised = replace(current, secret=secret, former=former)
    await check_changed_key(opened.tenant, opened.db, current, revised, by=opened.by)
    await ROWS.save(opened.tenant, opened.db, revised)
    _announce(opened, revised)
    return replace(revised, version=current.version + 1), minted.text


def digested(catalog: CatalogContext, minted: MintedKey, *, after: Key | None = None) -> KeySecret:
    """The next secret of a key: a digest of its text, which is stored instead of the text."""
    digest = digest_key(minted.text, catalog.sealer.derive(PEPPER_PURPOSE))
    number = 1 if after is None else after.secret.number + 1
    return KeySecret(digest=digest, pepper=catalog.sealer.names[0], number=number, made_at=datetime.now(UTC))


async def _makers(opened: OpenChanges) -> tuple[str, ...]:
    """The principals that may know a secret that the author generates.

    A person who makes a key with the scope `admin` can make further keys with it, so the makers of a key include the
    people behind the key of its author.
    """
    caller = opened.by.caller
    own = await keys.get(opened.tenant, opened.db, caller.key) if isinstance(caller, Principal) else None
    behind = [maker for maker in own.makers if maker.startswith("user:")] if own else []  # guard: key-makers-behind
    return (caller.name, *behind)


def _announce(opened: OpenChanges, key: Key) -> None:
    """Announce the secrets that stay valid."""
    kept = tuple(secret.number for secret in key.secrets)
    is_ended = key.revoked_at is not None
    opened.announce(KeyChanged(tenant=opened.tenant, key=key.id, is_ended=is_ended, kept=kept))


async def _complete(opened: OpenChanges, current: Key | None, wanted: Key) -> Key:
    """Return a new key with its tenant, subject and makers."""
    if current is not None:
        return wanted
    secret = replace(wanted.secret, made_by=await _makers(opened))
    return replace(wanted, tenant=opened.tenant, subject=wanted.principal, secret=secret)


async def _check(opened: OpenChanges, current: Key | None, wanted: Key) -> None:
    tenant, db, by = opened.tenant, opened.db, opened.by
    _check_grant(by, wanted.scopes)  # guard: key-scope-granted
    if current is not None:
        if wanted.expires_at != current.expires_at:
            _check_end(wanted.expires_at)
        await check_changed_key(tenant, db, current, wanted, by=by)
        return
    if wanted.scopes >= {Scope.MCP, Scope.APPROVE}:
        fault = Fault(pointer="/scopes", reason="mcp and approve exclude each other: no key may approve its own calls")
        raise InvalidBody(f"scopes: {fault.reason}", faults=[fault])
    _check_end(wanted.expires_at)
    await _check_profile(tenant, db, wanted.profile)
    await check_new_key(tenant, db, wanted, by=by)


async def _written(opened: OpenChanges, before: Key | None, after: Key | None) -> None:
    if after is not None and before is not None:
        _announce(opened, after)
    elif before is not None:
        opened.announce(KeyChanged(tenant=opened.tenant, key=before.id, is_ended=True))


async def _check_removal(opened: OpenChanges, current: Key) -> None:
    await check_ended_key(opened.tenant, opened.db, current, by=opened.by)


def _check_room(current: Key) -> None:
    *_, former = current.secrets
    if former.ends_at is not None:
        message = f"the key has two secrets until {former.ends_at.isoformat(timespec='seconds')}, which is the limit"
        raise Conflict(f"{message}; end the old one (end-old-secret), or rotate without an overlap")


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


KEYS = KeyCollection(
    kind=KEY,
    rows=ROWS,
    complete=_complete,
    check=_check,
    written=_written,
    removing=_check_removal,
    is_locked=True,
)
