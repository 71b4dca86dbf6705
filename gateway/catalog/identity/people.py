"""People who sign in through an issuer of the tenant: read, denied, and readmitted."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.identity.limits import MAX_DENIED_AHEAD, MAX_PEOPLE
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, announce, change
from gateway.domain.events import KeyChanged
from gateway.domain.identifiers import TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.issuers import is_subject, new_person, person_id
from gateway.domain.tenancy.keys import Key
from gateway.domain.tenancy.limits import MAX_SUBJECT_LENGTH
from gateway.domain.tenancy.sign_ins import Person
from gateway.errors import InvalidBody, LimitExceeded, NotFound
from gateway.store.engine import Db, Store
from gateway.store.identity import issuers, keys, people

_RETENTION = timedelta(days=30)
_EXPIRY_TOLERANCE = timedelta(hours=12)


async def store_person(store: Store, person: Key) -> Key:
    """Return the stored person. A new person, or one whose expiry moved by at least 12 hours, is stored first.

    Raises:
        LimitExceeded: the tenant has reached its limit of people.
        DatabaseUnavailable: the person cannot be stored now.
    """
    async with store.lookup() as db:
        found = (await keys.find(db, [person.id])).get(person.id)
    if found is not None and _is_recent(found[0], person):
        return found[0]
    async with store.transaction(person.tenant) as db:
        if found is None:
            await _make_room(person.tenant, db, limit=MAX_PEOPLE)
        return await people.enter(person.tenant, db, person)


async def get_person(tenant: TenantId, catalog: CatalogContext, person: str) -> Person:
    """Return the person with this id or subject.

    Raises:
        NotFound: the tenant has no such person.
    """
    async with catalog.store.transaction(tenant) as db:
        [found] = await _with_keys(tenant, db, [await _get(tenant, db, person)])
    return found


async def page_people(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[Person]:
    """One page of the tenant's people, by default sorted by id."""
    async with catalog.store.transaction(tenant) as db:
        found = await people.page(tenant, db, after=after, limit=limit, order=order)
        return await _with_keys(tenant, db, found)


async def deny_person(
    tenant: TenantId, catalog: CatalogContext, person: str, *, by: Author, expected: Expected = None
) -> Person:
    """Deny a person by id or subject: every token of the person and every key of the same subject is refused.

    A subject of an issuer that has not signed in is stored as a denied person.

    Raises:
        NotFound: the tenant has no person with this id, or no issuer of the subject.
        InvalidBody: no access token can contain the subject.
        LimitExceeded: the tenant has reached its limit of people, denied ones included.
        PreconditionFailed: the current version matches no expected tag.
    """
    return await _set(tenant, catalog, CatalogChange(action="person.deny", target=person), by=by, expected=expected)


async def allow_person(
    tenant: TenantId, catalog: CatalogContext, person: str, *, by: Author, expected: Expected = None
) -> Person:
    """Admit a denied person again, and the keys of the same subject.

    Raises:
        NotFound: the tenant has no such person.
        PreconditionFailed: the current version matches no expected tag.
    """
    return await _set(tenant, catalog, CatalogChange(action="person.allow", target=person), by=by, expected=expected)


async def _set(
    tenant: TenantId, catalog: CatalogContext, entry: CatalogChange, *, by: Author, expected: Expected
) -> Person:
    is_denial = entry.action == "person.deny"
    async with change(tenant, catalog, entry, by=by) as db:
        current = await (_get_or_enter(tenant, db, entry.target) if is_denial else _get(tenant, db, entry.target))
        check_version(current, expected)
        entry.target, entry.detail = current.id, {"subject": current.subject}
        at = (current.revoked_at or datetime.now(UTC)) if is_denial else None
        saved = await people.set_denied(tenant, db, current.id, at=at)
        entry.before, entry.after = current, saved
        affected = await people.ids_of_subject(tenant, db, current.principal)
        [shown] = await _with_keys(tenant, db, [saved])
    for key in affected:
        await announce(catalog, KeyChanged(tenant=tenant, key=key, is_ended=is_denial))
    return shown


async def _with_keys(tenant: TenantId, db: Db, found: Sequence[Key]) -> Sequence[Person]:
    """People with the valid keys that they made, themselves or with keys that they made."""
    made = await keys.made_by(tenant, db, [f"user:{one.subject}" for one in found])
    return [Person.of(one, made) for one in found]


async def _get(tenant: TenantId, db: Db, person: str) -> Key:
    name, is_subject_given, subject = person.partition(":")
    issuer = await issuers.get(tenant, db, name) if is_subject_given else None
    found = await people.get(tenant, db, person_id(tenant, issuer.id, subject) if issuer else person)
    if found is None:
        raise NotFound("no such person")
    return found


async def _get_or_enter(tenant: TenantId, db: Db, person: str) -> Key:
    """Return the person with this id or subject. A subject that has not signed in is stored first."""
    name, is_subject_given, subject = person.partition(":")
    if not is_subject_given:
        return await _get(tenant, db, person)
    issuer = await issuers.get(tenant, db, name, locked=True)
    if issuer is None:
        raise NotFound(f"no issuer is named {name}; revoke the keys of a subject without an issuer instead")
    if not is_subject(subject):
        raise InvalidBody(f"a subject has 1 to {MAX_SUBJECT_LENGTH} printable characters, without blanks at its ends")
    new = new_person(tenant, issuer, subject, ends_at=datetime.now(UTC))
    found = await people.get(tenant, db, new.id)
    if found is None:
        await _make_room(tenant, db, limit=MAX_PEOPLE + MAX_DENIED_AHEAD)
    return found or await people.enter(tenant, db, new)


async def _make_room(tenant: TenantId, db: Db, *, limit: int) -> None:
    if await people.count(tenant, db) < limit:  # guard: people-bounded
        return
    if not await people.forget_ended(tenant, db, now=datetime.now(UTC), kept=_RETENTION):
        raise LimitExceeded(f"the tenant has reached its limit of {limit} people", retry_after_s=60.0)


def _is_recent(stored: Key, person: Key) -> bool:
    if stored.expires_at is None or person.expires_at is None:
        return False
    return stored.expires_at > person.expires_at - _EXPIRY_TOLERANCE
