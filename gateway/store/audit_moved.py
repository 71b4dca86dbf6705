"""Of which tenants a replica has written to the trail, since it last signed where their chains stand."""

from gateway.domain.identifiers import TenantId


class Moved:
    """Of which tenants this replica has written, and with which writers, since somebody asked."""

    def __init__(self) -> None:
        self._writers: dict[TenantId, set[str]] = {}

    def note(self, tenant: TenantId, writer: str) -> None:
        """The writer has written something of the tenant."""
        writers = self._writers.get(tenant)
        if writers is None:
            self._writers[tenant] = {writer}
        else:
            writers.add(writer)

    def take(self, limit: int) -> dict[TenantId, set[str]]:
        """The first so many tenants, which are forgotten here."""
        return {tenant: self._writers.pop(tenant) for tenant in list(self._writers)[:limit]}
