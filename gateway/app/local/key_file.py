"""A key of the gateway in a file that only its owner can read."""

import os
from pathlib import Path


def read_key(path: Path) -> str | None:
    """Return the key in a file; None without a file, or without a printable text in it."""
    try:
        stored = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return stored if stored and stored.isprintable() else None


def write_key(path: Path, key: str) -> None:
    """Write the key to a new file that only its owner can read, and replace the old file with it."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(f"{key}\n")
    fresh.replace(path)
