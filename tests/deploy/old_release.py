"""An older release of this repository's own history, unpacked and runnable beside the present one."""

import io
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.compose import ROOT

RELEASES = {
    "0001": "aa5b3d816fc5f98429479b0f9805ab46636970d2",
    "0042": "79130e097d45d60343ca668edda6541c9b9b624c",
}
"""Commits by their schema: the last one of the first migration, and the one before sessions of callers were shared."""

_PATIENCE_S = 120
_WHERE = "import gateway, gateway.store.engine as engine; print(gateway.__file__, engine.SCHEMA)"


@dataclass(frozen=True, slots=True)
class OldRelease:
    """The tree of an older commit, and a Python whose `gateway` it is."""

    tree: Path
    python: Path

    @property
    def environment(self) -> dict[str, str]:
        """Import guard against the folder in which a test runs."""
        return {"PYTHONSAFEPATH": "1"}

    def schema(self) -> str:
        """The migration it was written for; asked as its workers are started, so it is the old tree that answers."""
        where, schema = self._run([str(self.python), "-I", "-c", _WHERE], {}).split()
        assert Path(where).is_relative_to(self.tree), where
        return schema

    def migrate(self, owner_url: str, app_url: str, secret_key: str) -> None:
        """Its own `gateway migrate`."""
        notified = {
            "GATEWAY_DATABASE_URL": app_url,
            "GATEWAY_MIGRATION_DATABASE_URL": owner_url,
            "GATEWAY_SECRET_KEYS": secret_key,
        }
        self._run([str(self.python), "-m", "gateway", "migrate"], notified)

    def _run(self, command: list[str], notified: dict[str, str]) -> str:
        own = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
        ended = subprocess.run(
            command,
            env={**own, **self.environment, **notified},
            cwd=self.tree,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


def unpack_old_release(folder: Path, commit: str) -> OldRelease:
    """The tree of a commit with an environment of its own, in which it precedes our packages.

    A path in the environment would not do: the workers that read documents are started without it.
    """
    archive = _archived(commit)
    tree = folder / "tree"
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # Python before 3.11.4 has none
        packed.extractall(tree)
    home = folder / "venv"
    venv.create(home, symlinks=True, with_pip=False)
    theirs = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(home)}))
    ours = [path for path in sys.path if Path(path).name == "site-packages"]
    (theirs / "old_release.pth").write_text("\n".join([str(tree), *ours, ""]), encoding="utf-8")
    return OldRelease(tree, home / "bin" / "python")


def _archived(commit: str) -> bytes:
    """The commit as a tar; the test that asks is skipped where the history does not reach so far back."""
    try:
        made = subprocess.run(
            ["git", "-C", str(ROOT), "archive", commit, "gateway", "migrations"], capture_output=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("NOT RUN: there is no git to take the older release with")
    if made.returncode != 0:
        pytest.skip(f"NOT RUN: the history here does not hold {commit[:7]} (a shallow clone?): {made.stderr.decode()}")
    return made.stdout
