"""`python -m tests.site [--pages]`: the pages of `docs/` with their generated parts, and the site made of them.

`make docs` and `make map` run it. The pages are Markdown in `build/pages`, the site is HTML in `build/site`. A broken
link, a missing anchor or a page without a line in `docs/README.md` ends the build with an error. Nothing is fetched.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.site.pages import ROOT, write_pages

_CONFIGURATION = Path(__file__).parent


def main(arguments: Sequence[str], folder: Path = ROOT / "build") -> int:
    """Write both folders; return the exit code of Sphinx."""
    pages, site = folder / "pages", folder / "site"
    write_pages(pages)
    if "--pages" in arguments:
        print(f"The pages are in {pages}.")
        return 0
    shutil.rmtree(site, ignore_errors=True)
    code = build(pages, site)
    if code == 0:
        print(f"The site begins at {site / 'index.html'}.")
    return code


def build(pages: Path, site: Path) -> int:
    """Build the site; every warning is an error, and all of them are printed."""
    strict = ("--fail-on-warning", "--keep-going", "--quiet", "--fresh-env", "--jobs", "auto")
    folders = ("-c", str(_CONFIGURATION), "-d", str(pages.with_name("doctrees")), str(pages), str(site))
    return subprocess.run([sys.executable, "-m", "sphinx", "-b", "html", *strict, *folders], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
