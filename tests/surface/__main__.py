"""Prints the differences of the tree from the golden files, for users of the admin API, command line and database.

`python -m tests.surface` exits with 1 if there are any. `--write` renews the files first. `--since COMMIT` compares
with the files of a commit.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from tests.surface.canonical import Json
from tests.surface.differences import report
from tests.surface.golden import FOLDER, GOLDEN, Golden

_ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str]) -> int:
    """Renew the files if asked to, print the differences and return the exit code."""
    since = arguments[arguments.index("--since") + 1] if "--since" in arguments else None
    if "--write" in arguments:
        for golden in GOLDEN:
            golden.renew()
    found = [one for golden in GOLDEN for one in golden.differences(_former(golden, since))]
    print(report(found) or "no differences")
    return int(bool(found))


def _former(golden: Golden, since: str | None) -> Json | None:
    """The form that the file of a commit holds; None for the file of the working tree."""
    if since is None:
        return None
    shown = subprocess.run(
        ["git", "show", f"{since}:{(FOLDER / golden.name).relative_to(_ROOT)}"],
        cwd=_ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return cast("Json", json.loads(shown.stdout))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
