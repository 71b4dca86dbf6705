"""The distribution: its version, its name in package indexes, and the line that installs an extra of it."""

from typing import Final

VERSION: Final = "1.0.0"
"""The version of the wheel, too: `pyproject.toml` reads it here."""
DISTRIBUTION: Final = "mcp-tenant-gateway"
"""The name in package indexes. `gateway` is the name of the import and of the command."""


def install_line(extra: str) -> str:
    """Return the shell command that adds an extra."""
    return f'pip install "{DISTRIBUTION}[{extra}]"'
