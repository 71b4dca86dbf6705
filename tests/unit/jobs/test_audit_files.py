"""Files of audit trails: files after a full disk and a killed process."""

import resource
from pathlib import Path

import pytest

from gateway.jobs.audit_delivery import append_lines

_LINES = b'{"a":1}\n' * 20


def test_a_full_disk_is_a_failure(tmp_path: Path) -> None:
    """Ours: entries that the disk took half of are not counted as delivered (SAF-8)."""
    path = tmp_path / "trail.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            append_lines(path, _LINES)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    append_lines(path, _LINES)

    assert path.read_bytes().splitlines()[-20:] == _LINES.splitlines()


def test_an_unfinished_line_costs_no_entry(tmp_path: Path) -> None:
    """Ours: the first line after a write that was cut off is a line of its own (SAF-8)."""
    path = tmp_path / "trail.jsonl"
    append_lines(path, _LINES)
    path.write_bytes(path.read_bytes() + b'{"a":')
    append_lines(path, _LINES)

    assert path.read_bytes() == _LINES + b'{"a":\n' + _LINES
