"""A folder in memory for what tests write, where there is room for it.

Every database is three hundred files and every embedded server a thousand; on a disk that is the dearest part of many
tests, and nothing of it has to survive a power cut.
"""

import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 8 * 1024**3


def make_folder(memory: Path = _MEMORY, *, room_bytes: int = _ROOM_BYTES) -> Path | None:
    """A new folder that every user may enter, as the disk's is; None when programs cannot be run from there."""
    try:
        is_good = not os.statvfs(memory).f_flag & os.ST_NOEXEC and shutil.disk_usage(memory).free >= room_bytes
        folder = Path(tempfile.mkdtemp(prefix="gwx-", dir=memory)) if is_good else None
    except OSError:
        return None
    if folder is not None:
        folder.chmod(0o755)
    return folder
