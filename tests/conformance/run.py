"""Takes the exam and prints what came out; `--write` also writes docs/conformance.md."""

import argparse
import sys
import tempfile
from pathlib import Path

import anyio

from tests.conformance.report import PAGE, table, write_page
from tests.conformance.suite_gateway import open_hall
from tests.conformance.suites import RUNS, Outcome, take
from tests.support.servers import running_servers


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--keep", type=Path, help="keep what the suites wrote in this folder, which must not exist")
    asked = parser.parse_args()
    outcomes = anyio.run(_sit, asked.keep, backend_options={"use_uvloop": True})
    print(table(outcomes))
    shortcomings = [reported for outcome in outcomes for reported in outcome.shortcomings]
    print(*shortcomings, sep="\n")
    if asked.write and not shortcomings:
        write_page(outcomes)
    return 1 if shortcomings else 0


async def _sit(keep: Path | None) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as scratch, running_servers() as servers, servers.database() as database:
        results = keep or Path(scratch) / "results"
        async with open_hall(database.app_url, servers.empty_redis(), Path(scratch)) as suite_gateway:
            return [await take(run, suite_gateway, results / run.name) for run in RUNS]


if __name__ == "__main__":
    sys.exit(main())
