"""Checks the workflows and forms of `.github`: `python -m tests.workflows`, a part of `make check`.

zizmor looks for what gives a workflow's rights away (actions without a hash, templates in scripts, stored credentials);
the schemas of check-jsonschema find what the host refuses. Both run without a network.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_SCHEMAS = {
    "github-workflows": ("workflows/*.yml",),
    "github-issue-forms": ("ISSUE_TEMPLATE/[!c]*.yml",),
    "github-issue-config": ("ISSUE_TEMPLATE/config.yml",),
    "dependabot": ("dependabot.yml",),
}


def main(folder: Path = ROOT / ".github") -> int:
    """Print what the tools complain about; return 1 if one does."""
    commands = [["zizmor", "--offline", "--quiet", "--no-progress", str(folder)]]
    for schema, patterns in _SCHEMAS.items():
        files = sorted(str(path) for pattern in patterns for path in folder.glob(pattern))
        commands += [["check-jsonschema", "--quiet", "--builtin-schema", f"vendor.{schema}", *files]] if files else []
    ends = [subprocess.run([_tool(name), *arguments], check=False).returncode for name, *arguments in commands]
    return int(any(ends))


def _tool(name: str) -> Path:
    return Path(sys.executable).with_name(name)


if __name__ == "__main__":
    sys.exit(main())
