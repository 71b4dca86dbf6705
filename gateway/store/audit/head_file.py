"""Heads of audit trails in an append-only file: one line of JSON for each head.

All replicas of a machine may share the file: each batch is one write at its end. An operator can make the file
append-only (`chattr +a`), copy it to other machines, or rotate it by renaming.
"""

import os
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway.domain.fairness.thread_kinds import AUDIT_FILES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.errors import LimitExceeded
from gateway.store.audit.limits import MAX_HEAD_FILE_BYTES, MAX_HEADS

_HEADS = "audit heads"
"""The party of writes, which are of all tenants."""


class FileHeads:
    """The heads of all tenants in one file."""

    is_memory = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)

    async def put(self, heads: Mapping[TenantId, bytes]) -> None:
        """Append these heads.

        Raises:
            OSError: the file cannot be written.
        """
        lines = b"".join(head + b"\n" for head in heads.values())
        try:
            await run_in_thread(AUDIT_FILES, _HEADS, self._append, lines)
        except LimitExceeded as refused:  # earlier writes hang
            raise OSError(refused.message) from None

    async def get(self, tenant: TenantId) -> Sequence[bytes]:
        """The newest 10,000 heads of the tenant in the last 256 MiB of the file; empty if there is no file.

        Raises:
            OSError: the file cannot be read.
        """
        try:
            return await run_in_thread(AUDIT_FILES, tenant, self._read, tenant)
        except LimitExceeded as refused:  # earlier reads hang
            raise OSError(refused.message) from None

    def _append(self, lines: bytes) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(handle, "wb", buffering=0) as file:
            file.write(lines)
            os.fsync(file.fileno())

    def _read(self, tenant: TenantId) -> Sequence[bytes]:
        tenant_member = f'"tenant":"{tenant}"'.encode()
        found: deque[bytes] = deque(maxlen=MAX_HEADS)
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                if size > MAX_HEAD_FILE_BYTES:
                    file.seek(size - MAX_HEAD_FILE_BYTES)
                    file.readline()  # continues with the next whole line
                else:
                    file.seek(0)
                found.extend(line.rstrip(b"\n") for line in file if tenant_member in line)
        except FileNotFoundError:
            return []
        return list(found)
