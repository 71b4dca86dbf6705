"""An allow-list of one tenant, which a test changes."""

from collections.abc import Sequence

from gateway.domain.identifiers import TenantId
from gateway.upstream.egress.allow_list import NOTHING, AllowList, read_stored


class OneAllowList:
    """The allow-list of one tenant; the others have none."""

    def __init__(self, tenant: TenantId, *entries: str) -> None:
        self._tenant = tenant
        self.entries: Sequence[str] = entries

    def current(self, tenant: TenantId) -> AllowList | None:
        """The list as it is now."""
        return read_stored(self.entries) if tenant == self._tenant else NOTHING

    async def read(self, tenant: TenantId) -> AllowList:
        """Never needed: the list is always current."""
        raise NotImplementedError
