"""Secrets in files: nothing outside of the tenant's folder is opened."""

import os
from pathlib import Path

import pytest

from gateway.upstream.secret_stores.files import FileRefused, read_secret_file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a tenant, beside one of another tenant with a file, a pipe and a folder."""
    other = tmp_path / "globex"
    (other / "inner").mkdir(parents=True)
    (other / "token").write_text("of globex")
    os.mkfifo(other / "pipe")
    own = tmp_path / "acme"
    own.mkdir()
    return own


@pytest.mark.parametrize("name", ["token", "pipe", "inner"])
def test_a_link_to_the_outside_is_refused_before_it_is_opened(folder: Path, name: str) -> None:
    """Ours: a refusal does not show whether a file exists, and no pipe or device of another tenant is opened (IDN-5,
    TEN-5).
    """
    (folder / "link").symlink_to(f"../globex/{name}")
    with pytest.raises(FileRefused, match="outside of the tenant's folder"):
        read_secret_file(folder, "link")


def test_a_folder_that_is_replaced_while_it_is_read_leads_nowhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a tenant that can write to its folder wins nothing by a race (IDN-5, TEN-5)."""
    (folder / "inner").mkdir()
    (folder / "inner" / "token").write_text("of acme")
    assert read_secret_file(folder, "inner/token") == b"of acme"
    opened = os.open

    def replace(path: Path, flags: int) -> int:
        (folder / "inner").rename(folder / "before")
        (folder / "inner").symlink_to("../globex")
        return opened(path, flags)

    monkeypatch.setattr("gateway.upstream.secret_stores.files.os.open", replace)
    with pytest.raises(FileRefused, match="outside of the tenant's folder"):
        read_secret_file(folder, "inner/token")
