"""Sockets that are bound before anything else starts, so that an address in use is the first failure."""

import socket

from gateway.errors import BrokenSetting
from gateway.settings import Settings, url_of


class BoundListener:
    """A bound socket that does not listen yet."""

    def __init__(self, host: str, port: int, *, setting: str, is_shared: bool = False) -> None:
        """Bind the address; a shared one can be bound again, and the kernel distributes connections.

        Raises:
            BrokenSetting: the address cannot be bound; the message names the setting.
        """
        self._host = host
        self._setting = setting
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            self.socket.bind((host, port))
        except OSError as error:
            self.socket.close()
            raise BrokenSetting(f"{setting}: cannot listen on {host}:{port}: {error.strerror}") from None
        self.socket.set_inheritable(False)

    def bind_again(self) -> "BoundListener":
        """Bind another shared socket to the same address, then close this one, so that the port stays taken."""
        another = BoundListener(self._host, self.port, setting=self._setting, is_shared=True)
        self.socket.close()
        return another

    @property
    def port(self) -> int:
        """The bound port."""
        found: int = self.socket.getsockname()[1]
        return found

    @property
    def url(self) -> str:
        """The address as a URL."""
        return url_of(self._host, self.port)


def bind(settings: Settings) -> tuple[BoundListener, BoundListener | None]:
    """Bind the listener of MCP, and the admin API's own listener if it is configured.

    Raises:
        BrokenSetting: an address cannot be bound.
    """
    listener = BoundListener(settings.host, settings.port, setting="GATEWAY_PORT")
    if settings.admin_port is None:
        return listener, None
    try:
        return listener, BoundListener(settings.admin_address, settings.admin_port, setting="GATEWAY_ADMIN_PORT")
    except BrokenSetting:
        listener.socket.close()
        raise
