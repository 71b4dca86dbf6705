"""Whether somebody who opens the folder of documents finds every one of them."""

import re

from tests.deploy.compose import ROOT
from tests.deploy.pages import first_command

DOCS = ROOT / "docs"


def _links() -> list[str]:
    return re.findall(r"\]\(([^)#]+)\)", (DOCS / "README.md").read_text())


def test_the_index_leads_to_every_page() -> None:
    """Ours: no page is there for nobody; a folder with an index of its own counts once that is linked."""
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
    """Ours: whoever has read the README knows where the rest is."""
    assert "](docs/README.md)" in (ROOT / "README.md").read_text()


def test_the_first_pages_start_with_the_command_that_installs() -> None:
    """Ours: the first command works in a fresh clone; the test of a newcomer runs it (CLI-1)."""
    assert {first_command(page) for page in ("README.md", "docs/quickstart.md")} == {"make run"}
