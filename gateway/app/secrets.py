"""Keys of a gateway: configured, or generated once into the data directory, for this machine only.

Secrets that the gateway reads again while it serves: from the file that the environment names, or from that of the
generated operator key.
"""

import os
import secrets
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from gateway.app.backends import Backends
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.errors import BrokenSetting
from gateway.settings import PREFIX, Settings

OPERATOR_KEY_FILE = "operator-key"
SECRET_KEYS_FILE = "secret-keys"  # noqa: S105  # a file name


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayKeys:
    """The keys that encrypt stored secrets, and the key of the operator."""

    secret_keys: tuple[str, ...] = field(repr=False)
    operator_key: str = field(repr=False)
    """The accepted keys, comma-separated."""
    operator_key_is_new: bool

    @property
    def operator_keys(self) -> tuple[str, ...]:
        """The accepted operator keys; none if there is no key yet."""
        return tuple(key for key in self.operator_key.split(",") if key)


class RereadSecrets:
    """The secrets that can change while the gateway serves."""

    def __init__(self, settings: Settings, keys: GatewayKeys, addresses: Backends) -> None:
        self.database_url = _configured(settings, "database_url", addresses.database_url)
        self.redis_url = _configured(settings, "redis_url", addresses.redis_url)
        self.operator_key = _configured(settings, "operator_key", keys.operator_key)
        self.metrics_key = _optional(settings, "metrics_key")
        self.audit_heads_token = _optional(settings, "audit_heads_token")
        self.others = [secret for secret in (self.metrics_key, self.audit_heads_token) if secret is not None]
        fixed = {"secret_keys": settings.secret_keys, "vault_url": settings.vault_url}
        self.fixed = [PREFIX + name.upper() for name, value in fixed.items() if value]
        """Names of secrets that are read at the start only."""


def find_keys(settings: Settings) -> GatewayKeys:
    """Return the configured keys; a missing key is read from its file in the data directory, or generated there.

    Raises:
        BrokenSetting: the data directory cannot be read or written, or a key file is empty.
    """
    configured = tuple(key.get_secret_value() for key in settings.secret_keys)
    is_new = False
    operator_key = _joined(settings.operator_key)
    if not operator_key:
        operator_key, is_new = _load_or_generate(settings.data_dir / OPERATOR_KEY_FILE)
    secret_keys = configured or tuple(_load_or_generate(settings.data_dir / SECRET_KEYS_FILE)[0].split(","))
    return GatewayKeys(secret_keys=secret_keys, operator_key=operator_key, operator_key_is_new=is_new)


def read_keys(settings: Settings) -> GatewayKeys:
    """Read the keys that a gateway would use; unlike a start, this generates no key."""
    configured = tuple(key.get_secret_value() for key in settings.secret_keys)
    kept = _read(settings.data_dir / SECRET_KEYS_FILE)
    return GatewayKeys(
        secret_keys=configured or tuple(kept.split(",") if kept else ()),
        operator_key=_joined(settings.operator_key) or _read(settings.data_dir / OPERATOR_KEY_FILE),
        operator_key_is_new=False,
    )


def _configured(settings: Settings, name: str, value: str) -> ConfiguredSecret:
    """Return a secret with its present value; it is read again from its file, if it has one."""
    read: Callable[[], str] | None = None
    if settings.file_of(name) is not None:
        read = partial(settings.reread, name)
    elif name == "operator_key" and not settings.operator_key:
        read = partial(_load, settings.data_dir / OPERATOR_KEY_FILE)
    return ConfiguredSecret(value, name=PREFIX + name.upper(), read=read)


def _optional(settings: Settings, name: str) -> ConfiguredSecret | None:
    value: SecretStr | None = getattr(settings, name)
    return None if value is None else _configured(settings, name, value.get_secret_value())


def _joined(keys: Iterable[SecretStr]) -> str:
    return ",".join(key.get_secret_value() for key in keys)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _load_or_generate(path: Path) -> tuple[str, bool]:
    """Return the key in a file, and True if this call generated it.

    If two processes generate a key at the same time, both use the one that was stored first.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists() and (made := _generate(path)):
            return made, True
    except OSError as error:
        raise BrokenSetting(f"GATEWAY_DATA_DIR: {path} cannot be used: {error.strerror}") from None
    return _load(path), False


def _load(path: Path) -> str:
    try:
        found = path.read_text().strip()
    except OSError as error:
        raise BrokenSetting(f"GATEWAY_DATA_DIR: {path} cannot be used: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BrokenSetting(f"GATEWAY_DATA_DIR: {path} is not UTF-8; restore the key") from None
    if not found:
        raise BrokenSetting(f"GATEWAY_DATA_DIR: {path} is empty; restore the key, or delete the file for a new one")
    return found


def _generate(path: Path) -> str | None:
    """Write a new key; return None if another process stored one first. The file appears with its content."""
    made = f"gwop_{secrets.token_urlsafe(32)}"
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-") as file:
        file.write(f"{made}\n")
        file.flush()
        os.fsync(file.fileno())
        try:
            os.link(file.name, path)
        except FileExistsError:
            return None
    return made
