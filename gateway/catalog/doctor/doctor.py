"""The doctor: runs all checks on one installation. Each finding that is not OK contains a remedy.

If PostgreSQL or Redis does not respond, only the findings that depend on it are missing. The doctor changes nothing. No
finding contains a secret or a connection URL.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import anyio

from gateway.catalog.doctor.client_checks import check_clients
from gateway.catalog.doctor.environment_checks import (
    Installation,
    check_clock,
    check_default_policy,
    check_disk,
    check_egress,
    check_keys,
)
from gateway.catalog.doctor.handler_checks import check_handlers
from gateway.catalog.doctor.limits import MAX_SOURCES, MAX_TENANTS, TIMEOUT_S
from gateway.catalog.doctor.live_source_checks import check_live_sources
from gateway.catalog.doctor.policy_checks import check_policies
from gateway.catalog.doctor.reference_checks import check_references
from gateway.catalog.doctor.secret_key_checks import check_secret_keys
from gateway.catalog.doctor.sign_in_checks import check_sign_in
from gateway.catalog.doctor.source_checks import check_sources
from gateway.catalog.doctor.store_checks import check_database, check_parts, check_redis, check_versions
from gateway.catalog.identity.secret_keys.status import read_state
from gateway.catalog.snapshots.hidden_primitives import find_hidden
from gateway.domain.findings import Finding, failure, fine, list_names, warning
from gateway.domain.tenancy.tenants import Tenant
from gateway.errors import GatewayError, SecretUnreadable, Unavailable
from gateway.redis.diagnostics import RedisFacts, examine_redis
from gateway.store import secrets, tenants
from gateway.store.database.diagnostics import DatabaseFacts, examine_database
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.store.sources import sources

ExamineParts = Callable[[], Awaitable[tuple[str, Mapping[str, str]]]]
"""Returns the status of a running replica, and the reason for each part that fails."""

_Facts = TypeVar("_Facts", DatabaseFacts, RedisFacts)

_MORE_THAN_ONE = 2
_DATABASE_FIRST = "fix the findings on the database first"
_listed = partial(list_names, limit=5)


class Doctor:
    """Examines one installation; keeps no state between examinations."""

    def __init__(self, installation: Installation, *, examine_parts: ExamineParts | None = None) -> None:
        """`examine_parts` returns what `/readyz` of the running replica returns; None outside a gateway."""
        self._installation = installation
        self._examine_parts = examine_parts

    async def examine(self) -> Sequence[Finding]:
        """Run all checks; return the findings in the order in which an operator would fix them."""
        installation = self._installation
        database = await _examine(lambda: examine_database(installation.database_url))
        redis = await _examine(lambda: examine_redis(installation.redis_url))
        findings = [*check_database(database), *check_redis(redis)]
        if self._examine_parts is not None:
            findings.append(check_parts(*await self._examine_parts()))
        facts = database if isinstance(database, DatabaseFacts) else None
        known = redis if isinstance(redis, RedisFacts) else None
        tenant_count: int | None = None
        if facts is not None and not facts.missing:
            async with Store(installation.database_url, pool_size=1) as store:
                findings += await self._examine_tenants(store)
                tenant_count = await self._count_tenants(store)
        return [
            *findings,
            *check_keys(installation),
            check_egress(installation.egress_allow, tenant_count),
            check_clock(facts, known),
            check_disk(installation.data_dir, is_embedded=installation.is_embedded),
            check_versions(facts, known),
            check_default_policy(installation.tenant_policy),
        ]

    async def _examine_tenants(self, store: Store) -> Sequence[Finding]:
        """Findings on what tenants have stored."""
        return [
            await self._check_secrets(store),
            await check_handlers(store),
            *await self._check_secret_keys(store),
            await self._check_references(store),
            await self._check_code(store),
            await check_live_sources(store),
            await check_sources(store),
            await check_clients(store, self._installation.code),
            *await check_policies(store),
            await check_sign_in(store, self._installation.public_url),
        ]

    async def _count_tenants(self, store: Store) -> int | None:
        """Number of tenants, counted up to two; None if it is not needed or PostgreSQL does not respond."""
        if not self._installation.egress_allow:
            return None
        try:
            with anyio.fail_after(TIMEOUT_S):
                async with store.unscoped() as db:
                    return len(await tenants.page(db, after=None, limit=_MORE_THAN_ONE))
        except (GatewayError, TimeoutError):
            return None

    async def _check_code(self, store: Store) -> Finding:
        """Finding on Python primitives that are hidden by a name in a tenant's catalog."""
        code = self._installation.code
        try:
            with anyio.fail_after(TIMEOUT_S):
                hidden = await find_hidden(store, () if code is None else code.primitives())
        except (GatewayError, TimeoutError):
            return warning("code", "the names of tenants' primitives were not read", _DATABASE_FIRST)
        if not hidden:
            return fine("code", "no primitive of a tenant hides one that is registered in Python")
        names = [f"{one.slug}: the {one.family.replace('_', ' ')} {one.name} ({one.owner})" for one in hidden]
        remedy = "rename the tenant's primitive or the registered one"
        return warning("code", f"hidden by primitives of tenants: {_listed(names)}", remedy)

    async def _check_secrets(self, store: Store) -> Finding:
        """Finding on stored secrets: some of each tenant are decrypted, so a wrong key is found before a call.

        At most 100 tenants are examined, and at most five sources of each.
        """
        cipher = self._installation.cipher
        if cipher is None:
            return warning("secrets", "not decrypted: no secret key is configured", "set GATEWAY_SECRET_KEYS")
        try:
            with anyio.fail_after(TIMEOUT_S):
                opened, broken = await _decrypt_samples(store, cipher)
        except TimeoutError:
            return warning("secrets", "not decrypted: timeout", "check the load of PostgreSQL")
        except GatewayError as error:
            return warning("secrets", f"not decrypted: {error.message}", _DATABASE_FIRST)
        if broken:
            return failure(
                "secrets",
                f"no configured secret key decrypts stored secrets: tenants {_listed(broken)}",
                "add the key that encrypted them at the end of GATEWAY_SECRET_KEYS, or store the credentials again",
            )
        return fine("secrets", f"stored secrets were decrypted (tenants: {opened})")

    async def _check_secret_keys(self, store: Store) -> Sequence[Finding]:
        """Findings on secret keys other than the current one."""
        cipher = self._installation.cipher
        if cipher is None:
            return []
        try:
            with anyio.fail_after(TIMEOUT_S):
                return list(check_secret_keys(await read_state(store, cipher)))
        except (GatewayError, TimeoutError):
            return [warning("secret_rotation", "the secret keys were not read", _DATABASE_FIRST)]

    async def _check_references(self, store: Store) -> Finding:
        """Finding on credentials that refer to external secret stores."""
        cipher, stores = self._installation.cipher, self._installation.secret_stores
        if cipher is None or stores is None:
            return fine("secret_references", "no external secret store is configured")
        try:
            with anyio.fail_after(TIMEOUT_S):
                return await check_references(store, cipher, stores)
        except (GatewayError, TimeoutError):
            return warning("secret_references", "the references were not read: timeout", _DATABASE_FIRST)


async def _examine(examine: Callable[[], Awaitable[_Facts]]) -> _Facts | GatewayError:
    """Return the facts of an examination, or the error that ended it."""
    try:
        with anyio.fail_after(TIMEOUT_S):
            return await examine()
    except TimeoutError:
        return Unavailable(f"no response within {TIMEOUT_S:.0f} seconds")
    except GatewayError as error:
        return error


async def _decrypt_samples(store: Store, cipher: EnvelopeCipher) -> tuple[int, Sequence[str]]:
    """Return the number of tenants whose secrets can be decrypted, and the slugs of the others; at most 100 tenants."""
    opened, broken = 0, list[str]()
    async with store.unscoped() as db:
        found = await tenants.page(db, after=None, limit=MAX_TENANTS)
    for tenant in found:
        try:
            opened += await _can_decrypt(tenant, store, cipher)
        except SecretUnreadable:
            broken.append(tenant.slug)
    return opened, broken


async def _can_decrypt(tenant: Tenant, store: Store, cipher: EnvelopeCipher) -> bool:
    async with store.transaction(tenant.id) as db:
        for source in await sources.page(tenant.id, db, after=None, limit=MAX_SOURCES):
            if await secrets.load(tenant.id, db, cipher, source.id):
                return True
    return False
