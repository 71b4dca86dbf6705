"""Sign-ins of people: stored with the tokens of their issuer, read for browser sessions, and deleted when they end."""

from datetime import UTC, datetime, timedelta

from gateway.catalog.identity.limits import MAX_SESSIONS
from gateway.catalog.identity.people import store_person
from gateway.catalog.identity.person_records import record_act
from gateway.catalog.transaction import CatalogContext
from gateway.domain.audit import SIGN_IN
from gateway.domain.identifiers import KeyId, SignInId, TenantId
from gateway.domain.refusals import SignInRefused
from gateway.domain.tenancy.keys import Key
from gateway.domain.tenancy.sign_ins import ProviderTokens, SignIn
from gateway.store import jobs
from gateway.store.engine import Db
from gateway.store.identity import consents, grants, keys, oauth_clients, sign_ins
from gateway.store.jobs import Job

KIND = "sign-ins"
"""Kind, and id within the tenant, of the job that deletes ended sign-ins and grants."""
DENIED = "This person may not use the tenant; ask the tenant's administrator."
_LEASE = timedelta(minutes=5)
_PAUSE = timedelta(minutes=10)
KEPT = timedelta(days=1)
"""Time for which ended grants are listed, and used codes are recognised."""
CODE_KEPT = timedelta(minutes=10)
UNUSED = timedelta(days=1)
"""Time after which a client that registered itself and was never used is deleted."""
IDLE = timedelta(days=90)
"""Time after its last use after which a client that registered itself is deleted."""
_REFRESH = timedelta(seconds=45)
"""Lease of a refresh at the provider, longer than its request takes."""


async def enter_sign_in(
    tenant: TenantId,
    catalog: CatalogContext,
    person: Key,
    sign_in: SignIn,
    *,
    tokens: ProviderTokens,
    correlation_id: str,
) -> Key:
    """Store a sign-in, and the person at the first sign-in; return the stored person.

    Raises:
        SignInRefused: the person is denied; only the person is stored.
        LimitExceeded: the tenant has too many people.
        NotFound: the issuer was deleted concurrently.
        AuditUnavailable: the sign-in could not be recorded.
    """
    stored = await store_person(catalog.store, person)
    if stored.revoked_at is not None:  # guard: sign-in-denied
        raise SignInRefused(DENIED)
    async with catalog.store.transaction(tenant) as db:
        await schedule_clean_up(tenant, db, sign_in.session_ends_at)
        await sign_ins.insert(tenant, db, catalog.sealer, sign_in, tokens=tokens)
        # guard: sign-in-sessions-bounded
        await sign_ins.end_oldest(tenant, db, stored.id, limit=MAX_SESSIONS, at=sign_in.created_at)
        detail: dict[str, object] = {"sign_in": sign_in.id}
        await record_act(catalog, stored, SIGN_IN, correlation_id=correlation_id, detail=detail)
    return stored


async def find_session(tenant: TenantId, catalog: CatalogContext, sign_in: SignInId) -> tuple[SignIn, Key] | None:
    """The sign-in of a browser session and its person; None if one of them has ended."""
    async with catalog.store.transaction(tenant) as db:
        found = await sign_ins.get(tenant, db, sign_in)
        if found is None or found.session_ends_at <= datetime.now(UTC):  # guard: session-ended
            return None
        person = await find_person(tenant, db, found.person)
    return None if person is None else (found, person)


async def find_person(tenant: TenantId, db: Db, person: KeyId) -> Key | None:
    """The person with this id; None if the person was deleted or denied."""
    found = await keys.get(tenant, db, person)
    return None if found is None or found.revoked_at is not None else found


async def end_session(tenant: TenantId, catalog: CatalogContext, sign_in: SignInId) -> None:
    """End the browser session of a sign-in."""
    async with catalog.store.transaction(tenant) as db:
        await sign_ins.end_session(tenant, db, sign_in, at=datetime.now(UTC))


async def open_sign_in(
    tenant: TenantId, catalog: CatalogContext, sign_in: SignInId
) -> tuple[SignIn, ProviderTokens] | None:
    """A sign-in as it is stored now, and the tokens that the issuer returned for it; None if it was deleted.

    Raises:
        SecretUnreadable: no configured key decrypts them.
    """
    async with catalog.store.transaction(tenant) as db:
        found = await sign_ins.get(tenant, db, sign_in)
        tokens = None if found is None else await sign_ins.open_tokens(tenant, db, catalog.sealer, found)
    return None if found is None or tokens is None else (found, tokens)


async def take_lease(tenant: TenantId, catalog: CatalogContext, sign_in: SignInId, lease: str) -> bool:
    """Acquire the lease to refresh the tokens of a sign-in for 45 seconds; False while another request holds it."""
    now = datetime.now(UTC)
    async with catalog.store.transaction(tenant) as db:
        return await sign_ins.take_lease(tenant, db, sign_in, lease, now=now, until=now + _REFRESH)


async def end_lease(tenant: TenantId, catalog: CatalogContext, sign_in: SignInId, lease: str) -> None:
    """Release the lease, so that other requests can refresh the tokens."""
    async with catalog.store.transaction(tenant) as db:
        await sign_ins.end_lease(tenant, db, sign_in, lease)


async def save_provider_tokens(
    tenant: TenantId, catalog: CatalogContext, sign_in: SignIn, tokens: ProviderTokens, *, lease: str
) -> bool:
    """Store the claims and tokens of a refresh; False if its lease has expired."""
    async with catalog.store.transaction(tenant) as db:
        return await sign_ins.save(tenant, db, catalog.sealer, sign_in, tokens=tokens, lease=lease)


async def clean_up(catalog: CatalogContext, due: Job) -> None:
    """Delete ended sign-ins and grants, and unused clients with their consents; reschedule the job for the next end."""
    tenant, now = due.tenant, datetime.now(UTC)
    async with catalog.store.upkeep(tenant) as db:
        if not await jobs.reschedule(tenant, db, due.id, seen=due.due_at, to=now + _LEASE):
            return
        grant_end = await grants.remove_ended(tenant, db, ended_before=now - KEPT, codes_expired_before=now - CODE_KEPT)
        session_end = await sign_ins.remove_ended(tenant, db, now=now)
        for client in await oauth_clients.remove_unused(
            tenant, db, registered_before=now - UNUSED, used_before=now - IDLE
        ):
            await consents.remove_client(tenant, db, client)
        unused, used = await oauth_clients.oldest_dates(tenant, db)
        ends = [session_end, _later(grant_end, KEPT), _later(unused, UNUSED), _later(used, IDLE)]
        next_at = min((end for end in ends if end is not None), default=None)
        if next_at is None:
            await jobs.remove(tenant, db, due.id)
        else:
            at = max(next_at, now + _PAUSE)
            await jobs.schedule(tenant, db, Job(tenant=tenant, id=KIND, kind=KIND, due_at=at))


def _later(at: datetime | None, by: timedelta) -> datetime | None:
    return None if at is None else at + by


async def schedule_clean_up(tenant: TenantId, db: Db, at: datetime) -> None:
    """Make the clean-up due at this time, unless it is due earlier.

    This locks the job, so it precedes all other writes of the transaction, as in `clean_up`.
    """
    await jobs.bring_forward(tenant, db, Job(tenant=tenant, id=KIND, kind=KIND, due_at=at))
