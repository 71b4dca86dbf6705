"""Keys of a gateway: configured, or generated once into the data directory, for this machine only."""

import os
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from gateway.errors import BrokenSetting
from gateway.settings import Settings

OPERATOR_KEY_FILE = "operator-key"
SECRET_KEYS_FILE = "secret-keys"  # noqa: S105  # a file name


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayKeys:
    """The keys that encrypt stored secrets, and the key of the operator."""

    secret_keys: tuple[str, ...] = field(repr=False)
    operator_key: str = field(repr=False)
    operator_key_is_new: bool


def find_keys(settings: Settings) -> GatewayKeys:
    """Return the configured keys; a missing key is read from its file in the data directory, or generated there.

    Raises:
        BrokenSetting: the data directory cannot be read or written, or a key file is empty.
    """
    configured = tuple(key.get_secret_value() for key in settings.secret_keys)
    is_new = False
    if settings.operator_key is not None:
        operator_key = settings.operator_key.get_secret_value()
    else:
        operator_key, is_new = _load_or_generate(settings.data_dir / OPERATOR_KEY_FILE)
    secret_keys = configured or tuple(_load_or_generate(settings.data_dir / SECRET_KEYS_FILE)[0].split(","))
    return GatewayKeys(secret_keys=secret_keys, operator_key=operator_key, operator_key_is_new=is_new)


def read_keys(settings: Settings) -> GatewayKeys:
    """Read the keys that a gateway would use; unlike a start, this generates no key."""
    configured = tuple(key.get_secret_value() for key in settings.secret_keys)
    kept = _read(settings.data_dir / SECRET_KEYS_FILE)
    operator = settings.operator_key
    return GatewayKeys(
        secret_keys=configured or tuple(kept.split(",") if kept else ()),
        operator_key=operator.get_secret_value() if operator else _read(settings.data_dir / OPERATOR_KEY_FILE),
        operator_key_is_new=False,
    )


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
        found = path.read_text().strip()
    except OSError as error:
        raise BrokenSetting(f"GATEWAY_DATA_DIR: {path} cannot be used: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BrokenSetting(f"GATEWAY_DATA_DIR: {path} is not UTF-8; restore the key") from None
    if not found:
        raise BrokenSetting(f"GATEWAY_DATA_DIR: {path} is empty; restore the key, or delete the file for a new one")
    return found, False


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
