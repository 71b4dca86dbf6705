"""The clean-up round of sign-ins: what has ended goes, what lives stays, and each tenant has a round of its own."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gateway.catalog import tenants
from gateway.catalog.identity.sign_ins import KIND, clean_up
from gateway.domain.identifiers import SignInId, TenantId
from gateway.domain.tenancy.grants import ClientKind
from gateway.domain.tenancy.issuers import Issuer
from gateway.domain.tenancy.keys import Key
from gateway.store import jobs
from gateway.store.engine import Db
from gateway.store.identity import consents, grants, issuers, oauth_clients, people, sign_ins
from gateway.store.jobs import Job
from gateway.store.kinds.oauth_clients import CLIENTS as STORED_CLIENTS
from tests.integration.catalog.conftest import BY, Changes
from tests.integration.store.samples import (
    make_client,
    make_consent,
    make_grant,
    make_grant_secrets,
    make_issuer,
    make_person,
    make_provider_tokens,
    make_sign_in,
)

NOW = datetime.now(UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
DYNAMIC, REGISTERED = ClientKind.DYNAMIC, ClientKind.REGISTERED
CLIENTS = (
    ("old, never used", DYNAMIC, 2 * DAY, None),
    ("old, not used for long", DYNAMIC, 200 * DAY, 91 * DAY),
    ("live, new", DYNAMIC, HOUR, None),
    ("live, used", DYNAMIC, 200 * DAY, 89 * DAY),
    ("live, of an administrator", REGISTERED, 900 * DAY, None),
)
"""Name, kind, and the times since the registration and since the last use."""
SIGN_INS = (
    ("old session", -HOUR, None),
    ("old session and grant", -HOUR, -2 * DAY),
    ("live session", HOUR, -2 * DAY),
    ("live grant", -HOUR, DAY),
    ("live grant that stays listed", -HOUR, -HOUR),
)
"""Name, and the times until the session and the idle grant end."""


async def _insert_clients(tenant: TenantId, db: Db, person: Key) -> None:
    for name, kind, made, used in CLIENTS:
        client = replace(make_client(name, kind=kind), name=name, created_at=NOW - made)
        client = client if used is None else replace(client, status=replace(client.status, used_at=NOW - used))
        await STORED_CLIENTS.insert(tenant, db, client)
        await consents.enter(tenant, db, make_consent(person, client, "host"))


async def _insert_sign_ins(changes: Changes, db: Db, issuer: Issuer, person: Key) -> dict[SignInId, str]:
    tenant, names = person.tenant, dict[SignInId, str]()
    for name, session, idle in SIGN_INS:
        sign_in = replace(make_sign_in(issuer, person, name), session_ends_at=NOW + session)
        await sign_ins.insert(tenant, db, changes.catalog.sealer, sign_in, tokens=make_provider_tokens(name))
        names[sign_in.id] = name
        if idle is not None:
            grant = make_grant(sign_in, person, make_client(name), name)
            dated = replace(grant, client_name=name, idle_ends_at=NOW + idle, ends_at=NOW + 9 * DAY)
            await grants.insert(tenant, db, dated, make_grant_secrets(name))
    return names


async def _fill(changes: Changes, tenant: TenantId) -> dict[SignInId, str]:
    """Every client and sign-in above, and a job that is due; return the names of the sign-ins."""
    async with changes.catalog.store.transaction(tenant) as db:
        issuer = make_issuer("corp")
        await issuers.insert(tenant, db, issuer)
        person = await people.enter(tenant, db, make_person(tenant, issuer))
        await _insert_clients(tenant, db, person)
        names = await _insert_sign_ins(changes, db, issuer, person)
        code = replace(make_grant_secrets("code"), code_used_at=None, code_ends_at=NOW - HOUR)
        session = next(each for each, name in names.items() if name == "live session")
        found = await sign_ins.get(tenant, db, session)
        assert found is not None
        unused = make_grant(found, person, make_client("code"), "code")
        await grants.insert(tenant, db, replace(unused, idle_ends_at=NOW + DAY, ends_at=NOW + DAY), code)
        await jobs.schedule(tenant, db, Job(tenant=tenant, id=KIND, kind=KIND, due_at=NOW - HOUR))
    return names


async def _left(changes: Changes, tenant: TenantId, names: dict[SignInId, str]) -> list[set[str]]:
    """The names of the clients, consents, grants and sign-ins of a tenant, and the number of all its grants."""
    async with changes.catalog.store.transaction(tenant) as db:
        clients = await STORED_CLIENTS.page(tenant, db, after=None, limit=99)
        permitted = await consents.page(tenant, db, after=None, limit=99)
        granted = await grants.page(tenant, db, after=None, limit=99)
        stored = {name for each, name in names.items() if await sign_ins.get(tenant, db, each) is not None}
        held = await grants.beyond(tenant, db, permitted[0].person, limit=0)
    return [
        {each.name for each in clients},
        {each.client_name for each in permitted},
        {each.client_name for each in granted},
        stored,
        {str(len(held))},
    ]


async def _due(changes: Changes) -> dict[TenantId, Job]:
    async with changes.catalog.store.unscoped() as db:
        found = await jobs.page(db, until=NOW + 99 * DAY, limit=99, of_each=9)
    return {job.tenant: job for job in found if job.kind == KIND}


async def test_clients_that_register_themselves_take_no_place_of_administrators(changes: Changes) -> None:
    """Ours: floods of registrations leave administrators their own limit (ISO-6)."""
    tenant = changes.tenant.id
    async with changes.catalog.store.transaction(tenant) as db:
        for name, kind in (("own", ClientKind.DYNAMIC), ("registered", ClientKind.REGISTERED)):
            await STORED_CLIENTS.insert(tenant, db, make_client(name, kind=kind))
        counts = await STORED_CLIENTS.count(tenant, db), await oauth_clients.count_dynamic(tenant, db)
    assert counts == (1, 1)


async def test_ended_rows_are_deleted_and_live_ones_stay(changes: Changes) -> None:
    """Ours: a round of one tenant deletes nothing of another, and is due again when the next row ends (IDN-2)."""
    acme, other = changes.tenant.id, (await tenants.create_tenant(changes.catalog, "other", "Other", by=BY)).id
    names = {tenant: await _fill(changes, tenant) for tenant in (acme, other)}
    everything = await _left(changes, other, names[other])
    due = await _due(changes)

    await clean_up(changes.catalog, due[acme])

    clients = {name for name, *_ in CLIENTS if name.startswith("live")}
    granted = {"live grant", "live grant that stays listed"}
    live = [clients, clients, granted, {"live session", *granted}, {"2"}]
    assert await _left(changes, acme, names[acme]) == live
    assert await _left(changes, other, names[other]) == everything
    assert everything[-1] == {"5"}
    later = await _due(changes)
    assert (later[acme].due_at, later[other]) == (NOW + HOUR, due[other])

    await clean_up(changes.catalog, due[acme])  # another replica has done it
    await clean_up(changes.catalog, due[other])
    assert [await _left(changes, tenant, names[tenant]) for tenant in (acme, other)] == [live, live]
    assert (await _due(changes))[acme] == later[acme]
