"""Secrets in files: regular files in the tenant's folder.

Symbolic links are resolved first, and a target outside of the folder is refused. The functions block, so callers run
them in a thread.
"""

import os
import stat
from pathlib import Path

from gateway.upstream.secret_stores.limits import MAX_FILE_BYTES


class FileRefused(Exception):
    """The file cannot be read; the message is for administrators and never contains the content of the file."""


def read_secret_file(folder: Path, path: str) -> bytes:
    """Return the content of a file in a folder. Symbolic links are followed only within the folder.

    Raises:
        FileRefused: the file is missing, outside of the folder, not a regular file, or too large.
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
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        raise FileRefused("the file is not a regular file")
    opened = Path(f"/proc/self/fd/{handle}")
    # guard: reference-file-replaced
    if opened.exists() and not opened.resolve().is_relative_to(root):  # the path was replaced after it was resolved
        raise FileRefused("the file is outside of the tenant's folder")
    content = os.read(handle, MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise FileRefused(f"the file has more than {MAX_FILE_BYTES} bytes")
    return content
