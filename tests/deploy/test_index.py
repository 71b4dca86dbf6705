"""The index of the folder of documents leads to every one of them."""

import re
import shutil
import subprocess
from pathlib import Path

from tests.deploy.compose import ROOT
from tests.deploy.pages import first_command

DOCS = ROOT / "docs"


def _links() -> list[str]:
    return re.findall(r"\]\(([^)#]+)\)", (DOCS / "README.md").read_text())


def test_the_index_leads_to_every_page() -> None:
    """Ours: every page is linked; a folder with an index of its own counts once that is linked."""
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"README.md"}
    linked = set(_links())

    assert (
        sorted(page for page in pages if page not in linked and f"{page.partition('/')[0]}/README.md" not in linked)
        == []
    )


def test_the_index_leads_nowhere_else() -> None:
    """Ours: every link of the index ends at something."""
    assert [link for link in _links() if not (DOCS / link).exists()] == []


def test_the_first_page_leads_to_the_index() -> None:
    """Ours: a reader of the README knows where the rest is."""
    assert "](docs/README.md)" in (ROOT / "README.md").read_text()


def test_the_first_pages_start_with_the_command_that_installs() -> None:
    """Ours: the first command works in a fresh clone; the test of a newcomer runs it (CLI-1)."""
    assert first_command("docs/quickstart.md") == "make run"
    assert first_command("README.md").startswith("uvx --from ")


def test_an_old_python_is_named_and_leaves_no_environment(tmp_path: Path) -> None:
    """Ours: a first try with Python 3.10 does not spoil the second one."""
    for name in ("Makefile", "requirements-run.txt", "deploy/requirements-build.txt", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    old = tmp_path / ".venv" / "bin" / "python"
    old.parent.mkdir(parents=True)
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    other = shutil.copy(old, tmp_path / "python3.10")

    command = ["make", "run", f"PYTHON={other}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 2
    assert f"needs Python 3.11 or newer: {other} is older" in done.stderr
    assert not (tmp_path / ".venv").exists()
