"""Folders in which tests write."""

from pathlib import Path

from tests.support.memory import make_folder


def test_a_folder_is_made_where_there_is_room(tmp_path: Path) -> None:
    """Ours: each run has its own, which other users may enter: PostgreSQL runs as one."""
    first, second = (make_folder(tmp_path, room_bytes=1) for _ in range(2))

    assert first is not None
    assert second is not None
    assert first != second
    assert first.parent == tmp_path
    assert first.stat().st_mode & 0o777 == 0o755


def test_without_room_or_memory_the_disk_is_used(tmp_path: Path) -> None:
    """Ours: a machine that has no such folder, or a small one, runs the same tests."""
    assert make_folder(tmp_path, room_bytes=1 << 80) is None
    assert make_folder(tmp_path / "missing") is None
