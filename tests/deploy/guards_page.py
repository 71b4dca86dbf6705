"""The page of the guards: the threats are its own text, everything else comes from the table and the markers."""

import re
from pathlib import Path

from tests.guard_table import GUARDS
from tests.mutations import places

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security" / "guards.md"
_ROW = re.compile(r"^\| `([a-z0-9-]+)` \| (.*) \| `[^`]*` \| `[^`]*` \|$", re.MULTILINE)


def threats(page: str) -> dict[str, str]:
    """The threat that each guard stops, in the order of the page."""
    return dict(_ROW.findall(page))


def guards_page(threat_of: dict[str, str]) -> str:
    """The page with these threats; guards without one come last, with an empty cell."""
    files = places(ROOT)
    tests = {guard.name: guard.test for guard in GUARDS}
    names = [*(name for name in threat_of if name in tests), *(name for name in tests if name not in threat_of)]
    rows = [
        f"| `{name}` | {threat_of.get(name, '')} | `{', '.join(files.get(name, ()))}` | `{tests[name]}` |"
        for name in names
    ]
    return f"""# Guards

{len(rows)} guards, each marked in the code by a comment `# guard: NAME`.
`make mutate-guards` removes each alone, and its test must fail. Edit the threats only: `python -m tests.deploy.pages`
writes the rest from the markers and from `tests/guard_table.py`.

| guard | threat without it | where | noticed by |
| --- | --- | --- | --- |
""" + "".join(f"{row}\n" for row in rows)
