"""Tenants whose chains a replica has extended since it last signed their ends."""

from gateway.domain.identifiers import TenantId
from gateway.store.audit.signed_heads import End

Ends = dict[str, End | None]
"""Ends of chains by writer; None if this replica does not know the end."""


class UnsignedTenants:
    """Tenants whose chains this replica has extended since `take` last returned them, each with its writers."""

    def __init__(self) -> None:
        self._ends: dict[TenantId, Ends] = {}

    def note(self, tenant: TenantId, writer: str, end: End | None = None) -> None:
        """Record that the writer has extended the tenant's chain, with the chain's end if it is known.

        A recorded end is signed even if its entry was deleted from the database in the meantime.
        """
        ends = self._ends.get(tenant)
        if ends is None:
            self._ends[tenant] = {writer: end}
        elif end is not None or writer not in ends:
            ends[writer] = end

    def take(self, limit: int) -> dict[TenantId, Ends]:
        """Remove and return the first `limit` tenants."""
        return {tenant: self._ends.pop(tenant) for tenant in list(self._ends)[:limit]}
