"""Consents of people to clients: given on the consent page, listed, and revoked together with their grants."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.identity.limits import MAX_CONSENTS
from gateway.catalog.identity.person_records import record_act
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, announce, change
from gateway.domain.events import KeyChanged
from gateway.domain.identifiers import KeyId, TenantId, new_consent_id
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.grants import Consent, GrantFilter, OAuthClient
from gateway.domain.tenancy.keys import Key
from gateway.errors import LimitExceeded, NotFound
from gateway.store.engine import Db
from gateway.store.identity import consents, grants


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """A permission of a person: the client, the redirect host, and the resource and scopes of its tokens."""

    client: OAuthClient
    redirect_uri: str
    redirect_host: str
    resource: str
    profile: str
    scopes: tuple[str, ...]
    code_challenge: str

    def consent_of(self, person: Key) -> Consent:
        """The consent to store, so that the person is not asked for this permission again."""
        return Consent(
            id=new_consent_id(),
            person=person.id,
            subject=person.principal,
            client=self.client.id,
            client_name=self.client.name,
            redirect_host=self.redirect_host,
            resource=self.resource,
            scopes=self.scopes,
            created_at=datetime.now(UTC),
        )


async def has_consented(tenant: TenantId, catalog: CatalogContext, person: Key, wanted: Permission) -> bool:
    """True if the person has consented to this client, host and resource, with at least these scopes."""
    async with catalog.store.transaction(tenant) as db:
        found = await consents.find(tenant, db, wanted.consent_of(person))
    return found is not None and set(wanted.scopes) <= set(found.scopes)  # guard: consent-scopes


async def give_consent(
    tenant: TenantId, catalog: CatalogContext, db: Db, person: Key, *, wanted: Permission, correlation_id: str
) -> None:
    """Store a consent in the transaction of its grant; an existing consent receives these scopes.

    Raises:
        LimitExceeded: the person has too many consents.
        AuditUnavailable: the consent could not be recorded.
    """
    new_consent = wanted.consent_of(person)
    if await consents.find(tenant, db, new_consent) is None:
        held = await consents.page(tenant, db, after=None, limit=MAX_CONSENTS, person=person.id)
        if len(held) >= MAX_CONSENTS:  # guard: consents-bounded
            raise LimitExceeded(f"you have consented to {MAX_CONSENTS} clients (the limit); revoke unused consents")
    stored = await consents.enter(tenant, db, new_consent)
    detail: dict[str, object] = {
        "consent": stored.id,
        "client": stored.client,
        "client_name": stored.client_name,
        "redirect_host": stored.redirect_host,
        "resource": stored.resource,
        "scopes": list(stored.scopes),
    }
    await record_act(catalog, person, "consent.give", correlation_id=correlation_id, detail=detail)


async def get_consent(tenant: TenantId, catalog: CatalogContext, consent: str) -> Consent:
    """The consent with this id.

    Raises:
        NotFound: the tenant has no such consent.
    """
    async with catalog.store.transaction(tenant) as db:
        return await _find_consent(tenant, db, consent)


async def page_consents(
    tenant: TenantId,
    catalog: CatalogContext,
    *,
    after: str | None,
    limit: int,
    order: Order = KEYED,
    person: KeyId | None = None,
) -> Sequence[Consent]:
    """One page of the tenant's consents, or of one person's, by default sorted by id."""
    async with catalog.store.transaction(tenant) as db:
        return await consents.page(tenant, db, after=after, limit=limit, order=order, person=person)


async def revoke_consent(
    tenant: TenantId,
    catalog: CatalogContext,
    consent: str,
    *,
    by: Author,
    expected: Expected = None,
    person: KeyId | None = None,
) -> None:
    """Delete a consent, and revoke the grants of the person to this client for the resource.

    Raises:
        NotFound: the tenant has no such consent, or it belongs to a person other than `person`.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="consent.revoke", target=consent)
    async with change(tenant, catalog, entry, by=by) as db:
        found = await _find_consent(tenant, db, consent)
        if person not in {None, found.person}:  # guard: consent-own
            raise NotFound("no such consent")
        check_version(found, expected)
        grant_filter = GrantFilter(person_id=found.person, client=found.client, resource=found.resource)
        revoked = await grants.revoke(tenant, db, grant_filter, at=datetime.now(UTC), reason=by.caller.name)
        entry.detail = {"client": found.client, "resource": found.resource, "grants": len(revoked)}
        await consents.remove(tenant, db, found.id)
    await announce_ended(tenant, catalog, revoked)


async def announce_ended(tenant: TenantId, catalog: CatalogContext, ended: Sequence[KeyId]) -> None:
    """Publish that grants have ended; every replica then ends their calls, streams and tasks."""
    for event in events_of_ended(tenant, ended):
        await announce(catalog, event)


def events_of_ended(tenant: TenantId, ended: Sequence[KeyId]) -> Sequence[KeyChanged]:
    """The events of grants that have ended."""
    return [KeyChanged(tenant=tenant, key=grant, is_ended=True) for grant in ended]  # guard: grant-end-announced


async def _find_consent(tenant: TenantId, db: Db, consent: str) -> Consent:
    found = await consents.get(tenant, db, consent)
    if found is None:
        raise NotFound("no such consent")
    return found
