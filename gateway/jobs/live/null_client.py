"""The client of requests by the gateway itself to live sources; it ignores notifications and refuses requests."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.errors import CapabilityMissing
from gateway.upstream.live.interfaces import LiveClient


class _NullClient:
    """Ignores every notification and refuses every request."""

    caller = owner = mirrored = None

    def can(self, kind: str) -> bool:
        """Always False."""
        del kind
        return False

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Do nothing."""

    async def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Do nothing."""

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        """Refuse the request.

        Raises:
            CapabilityMissing: always.
        """
        raise CapabilityMissing("this request has no client to ask", capability=method.partition("/")[0])


NULL_CLIENT: Final[LiveClient] = _NullClient()
