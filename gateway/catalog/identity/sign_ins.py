"""Sign-ins of people: stored with the tokens of their issuer, read for browser sessions, and deleted when they end."""

from datetime import UTC, datetime, timedelta

from gateway.catalog.identity.people import store_person
from gateway.catalog.identity.person_records import record_act
from gateway.catalog.transaction import CatalogContext
from gateway.domain.audit import SIGN_IN
from gateway.domain.identifiers import KeyId, SignInId, TenantId
from gateway.domain.refusals import SignInRefused
from gateway.domain.tenancy.issuers import Issuer
from gateway.domain.tenancy.keys import Key
from gateway.domain.tenancy.sign_ins import ProviderTokens, SignIn
from gateway.errors import SecretUnreadable
from gateway.store import jobs
from gateway.store.engine import Db
from gateway.store.identity import issuers, keys, sign_ins
from gateway.store.jobs import Job

KIND = "sign-ins"
"""Kind, and id within the tenant, of the job that deletes what has ended."""
MOST_SESSIONS = 20
"""Limit on the browser sessions of one person; a further one ends the oldest."""
DENIED = "This person may not use the tenant; ask the tenant's administrator."
_LEASE = timedelta(minutes=5)


async def enter_sign_in(
    tenant: TenantId,
    catalog: CatalogContext,
    person: Key,
    sign_in: SignIn,
    tokens: ProviderTokens,
    *,
    correlation_id: str,
) -> Key:
    """Store a sign-in, and its person at the first one; return the stored person.

    Raises:
        SignInRefused: the person is denied; nothing but the person is stored.
        LimitExceeded: the tenant has too many people.
        NotFound: the issuer was deleted meanwhile.
        AuditUnavailable: the sign-in could not be recorded.
    """
    stored = await store_person(catalog.store, person)
    if stored.revoked_at is not None:  # guard: sign-in-denied
        raise SignInRefused(DENIED)
    async with catalog.store.transaction(tenant) as db:
        await sign_ins.insert(tenant, db, catalog.sealer, sign_in, tokens)
        # guard: sign-in-sessions-bounded
        await sign_ins.end_oldest(tenant, db, stored.id, most=MOST_SESSIONS, at=sign_in.created_at)
        await _schedule(tenant, db, sign_in.session_ends_at)
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
    """The person of this id; None if the person is gone or denied."""
    found = await keys.get(tenant, db, person)
    return None if found is None or found.revoked_at is not None else found


async def end_session(tenant: TenantId, catalog: CatalogContext, sign_in: SignInId) -> None:
    """End the browser session of a sign-in."""
    async with catalog.store.transaction(tenant) as db:
        await sign_ins.end_session(tenant, db, sign_in, at=datetime.now(UTC))


async def open_client_secret(tenant: TenantId, catalog: CatalogContext, issuer: Issuer) -> str:
    """The secret of the gateway's client at an issuer.

    Raises:
        SecretUnreadable: there is none, or no configured key opens it.
    """
    async with catalog.store.transaction(tenant) as db:
        found = await issuers.open_secret(tenant, db, catalog.sealer, issuer)
    if found is None:
        raise SecretUnreadable("The client of the issuer has no secret; store it again.")
    return found


async def clean_up(catalog: CatalogContext, due: Job) -> None:
    """Delete a tenant's ended sign-ins, and move the job to the time at which the next one ends."""
    tenant, now = due.tenant, datetime.now(UTC)
    async with catalog.store.upkeep(tenant) as db:
        if not await jobs.reschedule(tenant, db, due.id, seen=due.due_at, to=now + _LEASE):
            return
        next_at = await sign_ins.remove_ended(tenant, db, now=now)
        if next_at is None:
            await jobs.remove(tenant, db, due.id)
        else:
            await jobs.schedule(tenant, db, Job(tenant=tenant, id=KIND, kind=KIND, due_at=next_at))


async def _schedule(tenant: TenantId, db: Db, at: datetime) -> None:
    await jobs.bring_forward(tenant, db, Job(tenant=tenant, id=KIND, kind=KIND, due_at=at))
