"""Secrets in files: regular files below the tenant's folder, wherever symbolic links lead, read in a thread."""

import os
import stat
from pathlib import Path

LARGEST_FILE = 64 * 1024


class FileRefused(Exception):
    """The file cannot be read; the text is for administrators and contains nothing of the file."""


def read_secret_file(folder: Path, path: str) -> bytes:
    """The content of a file below a folder. Symbolic links are followed, but not out of the folder.

    Raises:
        FileRefused: there is no such file, or it is outside of the folder, no regular file, or too large.
    """
    try:
        root = folder.resolve(strict=True)
        target = (root / path).resolve(strict=True)
        if not target.is_relative_to(root):  # guard: reference-file-inside
            raise FileRefused("the file is outside of the tenant's folder")
        handle = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, RuntimeError, ValueError):  # a loop of links, a missing file, no permission
        raise FileRefused("the file does not exist, or the gateway may not read it") from None
    try:
        return _read(handle, root)
    except OSError:
        raise FileRefused("the file cannot be read") from None
    finally:
        os.close(handle)


def _read(handle: int, root: Path) -> bytes:
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        raise FileRefused("it is no regular file")
    opened = Path(f"/proc/self/fd/{handle}")
    if opened.exists() and not opened.resolve().is_relative_to(root):  # the path was replaced meanwhile
        raise FileRefused("the file is outside of the tenant's folder")
    content = os.read(handle, LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise FileRefused(f"the file has more than {LARGEST_FILE} bytes")
    return content
