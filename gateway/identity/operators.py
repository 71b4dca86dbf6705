"""Operators by name: the rights of an authenticated key or person of the installation.

Authentication is that of all keys and people, in the installation's tenant, whose principals have no scopes. So a place
that does not ask for their rights here permits them nothing.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from gateway.catalog.snapshots.limits import STALE_S
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.http.client_network import client_network
from gateway.domain.identifiers import INSTALLATION, KeyId, TenantId
from gateway.domain.tenancy.operators import OperatorGrant, OperatorRights
from gateway.domain.tenancy.principals import Caller, Operator, Principal
from gateway.errors import DatabaseUnavailable, Unauthenticated
from gateway.identity.limits import BREAK_GLASS_EACH_S, FRESH_ISSUERS_S, MAX_BREAK_GLASS
from gateway.identity.single_flight import SingleFlight

_ALL = "operators"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRecords:
    """The stored rights of operators: those of keys by id, and the grants of people and workloads."""

    keys: Mapping[KeyId, OperatorRights]
    grants: Sequence[OperatorGrant] = ()
    issuers: AbstractSet[str] = frozenset()
    """The names of the enabled issuers of the installation."""

    @property
    def has_administrator(self) -> bool:
        """True if an operator by name administers the installation, so that the setting's key is for emergencies."""
        return self.is_administered_by_people or any(one.is_unlimited for one in self.keys.values())

    @property
    def is_administered_by_people(self) -> bool:
        """True if a grant for an enabled issuer gives the rights of an administrator without limits."""
        return any(
            grant.rights.is_unlimited and entry.split(":")[1] in self.issuers
            for grant in self.grants
            for entry in grant.who
        )

    def rights_of(self, principal: Principal) -> Sequence[OperatorRights]:
        """Return the rights of a principal of the installation."""
        if principal.is_person:
            return [grant.rights for grant in self.grants if grant.names(principal)]
        own = self.keys.get(principal.key)
        return [] if own is None else [own]


class OperatorDirectory:
    """Cached rights of all operators: read again after a change, and at the latest after 1.5 s."""

    def __init__(self, load: Callable[[], Awaitable[OperatorRecords]], *, tokens_only: bool = False) -> None:
        self._load = load
        self._tokens_only = tokens_only
        self._turns = SingleFlight[str, OperatorRecords]()
        self._found: OperatorRecords | None = None
        self._read_at = -STALE_S
        self._changes = 0
        self._noted = BoundedCache[tuple[str, str], float](MAX_BREAK_GLASS)

    async def rights_of(self, principal: Principal) -> Sequence[OperatorRights]:
        """Return the rights of a principal of the installation.

        Raises:
            DatabaseUnavailable: the rights cannot be read, and were not read during the last minute.
        """
        return (await self._records()).rights_of(principal)

    async def refuse_keys(self, caller: Caller) -> None:
        """Refuse a key of an operator if operators sign in with tokens only, and one of them is an administrator.

        Raises:
            Unauthenticated: it is such a key.
        """
        if not self._tokens_only or (isinstance(caller, Principal) and (caller.is_person or not caller.operator)):
            return
        if (await self._records()).is_administered_by_people:  # guard: operator-keys-off
            raise Unauthenticated(
                "operators of this installation sign in with an access token of its issuer; keys are refused"
                " (GATEWAY_OPERATOR_SIGN_IN)"
            )

    async def is_break_glass(self, caller: Caller, address: str) -> bool:
        """True for the use of a key of the setting although an administrator by name exists: once in ten minutes.

        False too while the rights cannot be read, because the setting's key is the way in then.
        """
        if not isinstance(caller, Operator) or not caller.key:
            return False
        place = caller.key, client_network(address)
        if self._noted.get(place, 0.0) > time.monotonic():
            return False
        try:
            records = await self._records()
        except DatabaseUnavailable:
            return False
        if not records.has_administrator:
            return False
        self._noted[place] = time.monotonic() + BREAK_GLASS_EACH_S
        return True

    def note_change(self, tenant: TenantId) -> None:
        """Drop the cached rights if the catalog of the installation has changed."""
        if tenant == INSTALLATION:
            self.forget()  # guard: operator-rights-changed

    def forget(self) -> None:
        """Drop the cached rights, because they have changed."""
        self._changes += 1
        self._turns.forget()
        self._found = None

    async def _records(self) -> OperatorRecords:
        age = time.monotonic() - self._read_at
        if self._found is not None and age < FRESH_ISSUERS_S:
            return self._found
        try:
            return await self._turns.take(_ALL, self._read)
        except DatabaseUnavailable:
            if self._found is None or age > STALE_S:
                raise
            return self._found

    async def _read(self) -> OperatorRecords:
        asked_at, changes = time.monotonic(), self._changes
        found = await self._load()
        if changes == self._changes:
            self._found, self._read_at = found, asked_at
        return found


def is_of_installation(caller: Caller) -> bool:
    """True for an operator that signed in by name."""
    return isinstance(caller, Principal) and caller.tenant == INSTALLATION


def as_operator(principal: Principal) -> Operator:
    """Return the operator of the installation for a principal with the rights of an administrator without limits."""
    return Operator(name=principal.name, key=principal.key)
