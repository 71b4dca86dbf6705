"""The two files of contexts: `contexts.json`, and `keys.json`, which only its owner can read."""

import json
import os
import stat
from pathlib import Path

import click

from gateway.cli.connect.files import replace_file
from gateway.cli.contexts.limits import MAX_CONTEXTS_BYTES
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, is_object

APPLICATION = "mcp-tenant-gateway"
"""The name of the folder, and of the service in a keyring."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def folder() -> Path:
    """The folder of the person's configuration, by the convention of the system, such as `~/.config`."""
    return Path(click.get_app_dir(APPLICATION))


def read_file(name: str, *, is_private: bool = False) -> JsonObject:
    """Return the object of a file; an absent file has none.

    Raises:
        Failure: the file is no JSON object, or is private and others than its owner can read it.
    """
    path = folder() / name
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) * is_private), "rb") as file:
            if is_private:
                _check_private(path, os.fstat(file.fileno()))
            raw = file.read(MAX_CONTEXTS_BYTES + 1)
        found: object = json.loads(raw) if len(raw) <= MAX_CONTEXTS_BYTES else None
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}", ExitCode.FAILED) from None
    except ValueError:
        found = None
    if not is_object(found):
        raise Failure(f"{path} is not a JSON object of at most {MAX_CONTEXTS_BYTES:,} bytes", ExitCode.FAILED)
    return found


def write_file(name: str, content: JsonObject) -> None:
    """Replace a file in one step; only its owner can read it.

    Raises:
        Failure: the file cannot be written.
    """
    path = folder() / name
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, f"{json.dumps(content, indent=2)}\n".encode(), 0o600)
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror}", ExitCode.FAILED) from None


def _check_private(path: Path, found: os.stat_result) -> None:
    if os.name != "posix":
        return
    is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    if not is_own or found.st_mode & _OTHERS:  # guard: stored-key-private
        raise Failure(f"{path} holds keys and can be read by others: run chmod 600 {path}", ExitCode.DENIED)
