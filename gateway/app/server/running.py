"""Description of a gateway that responds to requests: its addresses, and the key that it generated."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.app.backends import Backends
from gateway.app.secrets import GatewayKeys
from gateway.app.server.bound_listener import BoundListener
from gateway.settings import Settings

if TYPE_CHECKING:  # a supervisor of workers imports no application
    from gateway.app.build import Application


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A gateway that responds to requests."""

    url: str
    admin_url: str
    """URL of the admin API: equal to `url`, unless the admin API has a listener of its own."""
    operator_key: str
    operator_key_is_new: bool
    data_dir: Path
    embedded: bool
    application: "Application | None" = field(default=None, repr=False)
    """The application of this process; None if workers serve."""

    @property
    def where(self) -> Mapping[str, object]:
        """The addresses, for the log."""
        return {"url": self.url, "admin_url": self.admin_url, "embedded": self.embedded}


def describe_running(
    settings: Settings,
    listener: BoundListener,
    admin_listener: BoundListener | None,
    *,
    keys: GatewayKeys,
    addresses: Backends,
) -> Running:
    """Describe the gateway that responds on these listeners."""
    url = settings.public_url or listener.url
    return Running(
        url=url,
        admin_url=url if admin_listener is None else admin_listener.url,
        operator_key=keys.operator_keys[0],
        operator_key_is_new=keys.operator_key_is_new,
        data_dir=settings.data_dir,
        embedded=addresses.is_embedded,
    )


Ready = Callable[[Running], Awaitable[None]]
