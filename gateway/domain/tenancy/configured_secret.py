"""A secret of the configuration that may change while the gateway serves, such as the URL of a database."""

from collections.abc import Callable

import structlog

from gateway.errors import BrokenSetting

log = structlog.get_logger(__name__)


class ConfiguredSecret:
    """The current value of a secret; a value from a file is read again when it is refused, and on SIGHUP."""

    __slots__ = ("_read", "name", "value")

    def __init__(self, value: str, *, name: str = "", read: Callable[[], str] | None = None) -> None:
        """`read` returns the value that its file has now, or raises `BrokenSetting`; None without a file."""
        self.value = value
        self.name = name
        self._read = read

    @property
    def has_file(self) -> bool:
        """True if the value can be read again; a variable of the environment is read at the start only."""
        return self._read is not None

    def reread(self) -> bool:
        """Read the value again, and return True if it has changed. A file that cannot be used changes nothing."""
        if self._read is None:
            return False
        try:
            value = self._read()
        except BrokenSetting as error:
            log.warning("secret_not_reread", name=self.name, reason=error.message)
            return False
        if value == self.value:
            return False
        self.value = value
        log.info("secret_reread", name=self.name)
        return True


def as_configured(value: str | ConfiguredSecret) -> ConfiguredSecret:
    """Return a secret that is given as a text as one that does not change."""
    return ConfiguredSecret(value) if isinstance(value, str) else value
