"""Of which tenants a replica has written to the trail, since it last signed where their chains stand."""

from gateway.domain.identifiers import TenantId
from gateway.store.audit.signed_heads import End

Ends = dict[str, End | None]
"""Writers, each with the end of its chain where this replica knows it."""


class UnsignedTenants:
    """Of which tenants this replica has written, and with which writers, since somebody asked."""

    def __init__(self) -> None:
        self._ends: dict[TenantId, Ends] = {}

    def note(self, tenant: TenantId, writer: str, end: End | None = None) -> None:
        """The writer has written something of the tenant, and its chain has this end.

        An end that was noted is signed even if its entry is deleted from the database before that.
        """
        ends = self._ends.get(tenant)
        if ends is None:
            self._ends[tenant] = {writer: end}
        elif end is not None or writer not in ends:
            ends[writer] = end

    def take(self, limit: int) -> dict[TenantId, Ends]:
        """The first so many tenants, which are forgotten here."""
        return {tenant: self._ends.pop(tenant) for tenant in list(self._ends)[:limit]}
