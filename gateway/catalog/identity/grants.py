"""Grants of people: created with a consent, used by tokens, listed, and revoked.

Codes and refresh tokens are stored as digests. A second use of a code, or the use of a refresh token that was
already replaced, revokes the grant. Two parties then hold the same secret, and one of them may have stolen it.
"""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.identity.consents import Permission, announce_ended, give_consent
from gateway.catalog.identity.limits import MAX_GRANTS
from gateway.catalog.identity.person_records import record_act
from gateway.catalog.identity.sign_ins import KEPT, find_person, schedule_clean_up
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.identifiers import KeyId, TenantId, new_grant_id
from gateway.domain.order import KEYED, Order
from gateway.domain.refusals import SignInRefused
from gateway.domain.tenancy.grant_secrets import Presented, digest_of, write_code
from gateway.domain.tenancy.grants import Grant, GrantFilter, GrantSecrets, GrantUse
from gateway.domain.tenancy.issuers import SignInClient, TenantIssuers
from gateway.domain.tenancy.keys import Key
from gateway.domain.tenancy.limits import CODE_S
from gateway.domain.tenancy.sign_ins import SignedInPerson, SignIn
from gateway.errors import NotFound
from gateway.store.engine import Db
from gateway.store.identity import grants
from gateway.store.identity import sign_ins as stored_sign_ins
from gateway.store.kinds.oauth_clients import CLIENTS


async def permit(
    tenant: TenantId,
    catalog: CatalogContext,
    holder: SignedInPerson,
    wanted: Permission,
    *,
    is_given: bool,
    correlation_id: str,
) -> str:
    """Store a grant, and the consent if it was given now; return the authorization code.

    Raises:
        LimitExceeded: the person has too many consents.
        NotFound: the person or the sign-in no longer exists.
        AuditUnavailable: the consent could not be recorded.
    """
    now, secret, person = datetime.now(UTC), secrets.token_urlsafe(32), holder.person
    grant = _new_grant(holder, wanted, now)
    code = GrantSecrets(
        code=digest_of(secret), code_challenge=wanted.code_challenge, code_ends_at=now + timedelta(seconds=CODE_S)
    )
    async with catalog.store.transaction(tenant) as db:
        await schedule_clean_up(tenant, db, grant.idle_ends_at + KEPT)
        if is_given:
            await give_consent(tenant, catalog, db, person, wanted=wanted, correlation_id=correlation_id)
        await grants.insert(tenant, db, grant, code)
        await CLIENTS.note(tenant, db, wanted.client.id, replace(wanted.client.status, used_at=now))
        revoked_grants = await _end_oldest(tenant, db, person.id, at=now)
    await announce_ended(tenant, catalog, revoked_grants)
    return write_code(grant.id, secret)


async def redeem_code(
    tenant: TenantId, catalog: CatalogContext, presented: Presented, *, correlation_id: str
) -> tuple[Grant, GrantSecrets] | None:
    """Exchange an authorization code; return its grant, or None if the code is unknown, ended or already used.

    A second use revokes the grant.
    """
    now = datetime.now(UTC)
    async with catalog.store.transaction(tenant) as db:
        grant = await grants.get(tenant, db, presented.grant, locked=True)
        stored = None if grant is None else await grants.secrets_of(tenant, db, grant.id)
        if grant is None or stored is None or not presented.is_code(stored):  # guard: code-digest
            return None
        if grant.revoked_at is not None or (stored.code_used_at is None and stored.code_ends_at <= now):
            return None
        if await grants.use_code(tenant, db, grant.id, at=now):
            return grant, stored
    await end_grant(tenant, catalog, grant, "code used twice", correlation_id=correlation_id)  # guard: code-replay
    return None


async def find_grant(tenant: TenantId, catalog: CatalogContext, grant: str) -> tuple[Grant, GrantSecrets] | None:
    """The grant with this id and its digests, as of one moment; None if there is no such grant.

    A rotation that is stored between the two reads would show its token as already replaced, but its key not yet.
    """
    async with catalog.store.reading(tenant) as db:
        found = await grants.get(tenant, db, grant)
        stored = None if found is None else await grants.secrets_of(tenant, db, found.id)
    return None if found is None or stored is None else (found, stored)


async def has_grants(tenant: TenantId, catalog: CatalogContext, client: str) -> bool:
    """True if tokens were issued to this client."""
    async with catalog.store.transaction(tenant) as db:
        return await grants.exist_for(tenant, db, client)


async def find_holder(tenant: TenantId, catalog: CatalogContext, found: TenantIssuers, grant: Grant) -> SignedInPerson:
    """The person of a grant, with the sign-in that is valid for it.

    Raises:
        SignInRefused: the person is denied or deleted, or the issuer no longer signs people in.
    """
    async with catalog.store.transaction(tenant) as db:
        person = await find_person(tenant, db, grant.person)
        sign_in = await stored_sign_ins.get(tenant, db, grant.sign_in)
    if person is None or sign_in is None:  # guard: grant-person-denied
        raise SignInRefused("The person is denied or must sign in again.")
    issuer = next((each for each in found.issuers if each.id == sign_in.issuer), None)
    if issuer is None or issuer.sign_in is None:  # guard: grant-issuer
        raise SignInRefused("The issuer of the person is not one at which the gateway signs people in.")
    return SignedInPerson(issuer=issuer, sign_in=sign_in, person=person)


async def record_use(
    tenant: TenantId, catalog: CatalogContext, person: Key, use: GrantUse, *, correlation_id: str
) -> bool:
    """Store the use of a grant and its next refresh token; False if another request has replaced the former token.

    The first tokens of a grant are recorded in the audit trail; those of a refresh are not.

    Raises:
        AuditUnavailable: the first tokens could not be recorded.
    """
    grant = use.grant
    async with catalog.store.transaction(tenant) as db:
        if use.renewed is None:
            await grants.note_use(tenant, db, grant)
        elif not await grants.rotate(tenant, db, grant, use.renewed, before=use.before):
            return False
        if use.before is None:
            await record_act(
                catalog, person, "grant.create", correlation_id=correlation_id, detail=_audit_detail(grant)
            )
    return True


async def end_grant(
    tenant: TenantId, catalog: CatalogContext, grant: Grant, reason: str, *, correlation_id: str
) -> None:
    """Revoke a grant after the misuse of its code or token; the audit trail contains the reason."""
    grant_filter = GrantFilter(id=grant.id)
    async with catalog.store.transaction(tenant) as db:
        revoked_grants = await grants.revoke(tenant, db, grant_filter, at=datetime.now(UTC), reason=reason)
        person = await find_person(tenant, db, grant.person)
        if revoked_grants and person is not None:
            detail = _audit_detail(grant) | {"reason": reason}
            await record_act(
                catalog, person, "grant.end", correlation_id=correlation_id, outcome="revoked", detail=detail
            )
    await announce_ended(tenant, catalog, revoked_grants)


async def end_grants_of(tenant: TenantId, catalog: CatalogContext, sign_in: SignIn, reason: str) -> None:
    """Revoke the grants of a sign-in whose person the issuer no longer knows, and end its session."""
    now, grant_filter = datetime.now(UTC), GrantFilter(sign_in_id=sign_in.id)
    async with catalog.store.transaction(tenant) as db:
        revoked_grants = await grants.revoke(tenant, db, grant_filter, at=now, reason=reason)
        await stored_sign_ins.end_session(tenant, db, sign_in.id, at=now)
        person = await find_person(tenant, db, sign_in.person)
        if person is not None:
            detail: dict[str, object] = {"sign_in": sign_in.id, "grants": len(revoked_grants), "reason": reason}
            await record_act(catalog, person, "grant.end", correlation_id="", outcome="revoked", detail=detail)
    await announce_ended(tenant, catalog, revoked_grants)


async def get_grant(tenant: TenantId, catalog: CatalogContext, grant: str) -> Grant:
    """The grant with this id.

    Raises:
        NotFound: the tenant has no such grant.
    """
    async with catalog.store.transaction(tenant) as db:
        return await _find(tenant, db, grant)


async def page_grants(
    tenant: TenantId,
    catalog: CatalogContext,
    *,
    after: str | None,
    limit: int,
    order: Order = KEYED,
    person: KeyId | None = None,
) -> Sequence[Grant]:
    """One page of the tenant's grants, or of one person's, by default sorted by id."""
    async with catalog.store.transaction(tenant) as db:
        return await grants.page(tenant, db, after=after, limit=limit, order=order, person=person)


async def revoke_grant(
    tenant: TenantId, catalog: CatalogContext, grant: str, *, by: Author, expected: Expected = None
) -> Grant:
    """Revoke a grant: every replica refuses its tokens within five seconds. A revoked grant is unchanged.

    Raises:
        NotFound: the tenant has no such grant.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="grant.revoke", target=grant)
    async with change(tenant, catalog, entry, by=by) as db:
        found = await _find(tenant, db, grant)
        check_version(found, expected)
        entry.detail = _audit_detail(found)
        grant_filter = GrantFilter(id=found.id)
        revoked_grants = await grants.revoke(tenant, db, grant_filter, at=datetime.now(UTC), reason=by.caller.name)
        revoked = await _find(tenant, db, grant)
    await announce_ended(tenant, catalog, revoked_grants)
    return revoked


async def _end_oldest(tenant: TenantId, db: Db, person: KeyId, *, at: datetime) -> Sequence[KeyId]:
    revoked_grants: list[KeyId] = []
    for oldest in await grants.beyond(tenant, db, person, limit=MAX_GRANTS):  # guard: grants-bounded
        revoked_grants += await grants.revoke(tenant, db, GrantFilter(id=oldest), at=at, reason="too many grants")
    return revoked_grants


async def _find(tenant: TenantId, db: Db, grant: str) -> Grant:
    found = await grants.get(tenant, db, grant)
    if found is None:
        raise NotFound("no such grant")
    return found


def _audit_detail(grant: Grant) -> dict[str, object]:
    return {"grant": grant.id, "client": grant.client, "resource": grant.resource}


def _new_grant(holder: SignedInPerson, wanted: Permission, now: datetime) -> Grant:
    terms = holder.issuer.sign_in or SignInClient(client_id="")
    max_end = now + timedelta(seconds=terms.grant_max_s)
    return Grant(
        id=new_grant_id(),
        person=holder.person.id,
        subject=holder.person.principal,
        sign_in=holder.sign_in.id,
        client=wanted.client.id,
        client_name=wanted.client.name,
        redirect_uri=wanted.redirect_uri,
        resource=wanted.resource,
        profile=wanted.profile,
        scopes=wanted.scopes,
        created_at=now,
        idle_ends_at=min(now + timedelta(seconds=terms.grant_idle_s), max_end),
        ends_at=max_end,
    )


def prolonged(grant: Grant, terms: SignInClient) -> Grant:
    """The grant after a use: its idle time restarts, up to its maximum lifetime."""
    now = datetime.now(UTC)
    return replace(grant, used_at=now, idle_ends_at=min(grant.ends_at, now + timedelta(seconds=terms.grant_idle_s)))
