"""The guards: threats are text of the page, locations come from the markers, tests from `tests/guard_table.py`."""

import re
from pathlib import Path

from tests.guard_table import GUARDS
from tests.mutations import places

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security" / "guards.md"
_ROW = re.compile(r"^\| `([a-z0-9-]+)` \| (.*) \|$", re.MULTILINE)
_ROWS = re.compile(r"^(?:\| `[a-z0-9-]+` \| .* \|\n)+", re.MULTILINE)


def threats(page: str) -> dict[str, str]:
    """The threat that each guard stops, in the order of the page."""
    return dict(_ROW.findall(page))


def with_rows(page: str) -> str:
    """The page with a row for each guard: new ones come last, with an empty threat; rows without a guard go."""
    threat_of = threats(page)
    tests = {guard.name for guard in GUARDS}
    names = [*(name for name in threat_of if name in tests), *sorted(tests - threat_of.keys())]
    rows = "".join(f"| `{name}` | {threat_of.get(name, '')} |\n" for name in names)
    return _ROWS.sub(lambda _: rows, page, count=1)


def guards_part() -> str:
    """Every guard with its threat, location and test, in the order of the page."""
    files = places(ROOT)
    tests = {guard.name: guard.test for guard in GUARDS}
    rows = [
        f"| `{name}` | {threat} | `{', '.join(files.get(name, ()))}` | `{tests[name]}` |"
        for name, threat in threats(PAGE.read_text()).items()
        if name in tests
    ]
    head = "| guard | threat without it | where | noticed by |\n| --- | --- | --- | --- |"
    return "\n".join([f"{len(rows)} guards.", "", head, *rows])
