"""Writes what is generated and kept in the tree: `python -m tests.deploy.pages`.

The package ships a page of errors and a module of command groups; `docs/security/guards.md` has a row for each guard.
All other generated parts of pages are made by `make docs` (`tests/site`).
"""

import re
from pathlib import Path

from tests.deploy.compose import ROOT
from tests.deploy.errors_page import errors_page
from tests.deploy.kind_groups import kind_groups
from tests.site.guards_part import PAGE, with_rows

DOCS = Path(__file__).parents[2] / "docs"


def pages() -> dict[str, str]:
    """Every file by its path from `docs`."""
    return {
        "security/guards.md": with_rows(PAGE.read_text()),
        "../gateway/cli/kinds/groups.py": kind_groups(),
        "../gateway/web/errors.html": errors_page((DOCS / "errors.md").read_text()),
    }


def first_command(page: str) -> str:
    """The first command that the page shows behind a prompt; `page` is relative to the repository."""
    found = re.search(r"^\$ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


if __name__ == "__main__":
    for name, page in pages().items():
        (DOCS / name).write_text(page)
