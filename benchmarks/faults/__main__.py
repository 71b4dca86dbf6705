"""`python -m benchmarks.faults`: each part fails in turn; one Markdown table has the cost.

Nothing here passes or fails. The last column but one is the target (docs/reliability.md). The last is the machine's
load when the line was measured, because times have no meaning without it.
"""

import argparse
import contextlib
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio

from benchmarks.faults.crashes import measure_crashes
from benchmarks.faults.delays import measure_changes, measure_hangups, measure_revocations
from benchmarks.faults.neighbours import measure_noisy_tenant, measure_slow_upstream
from benchmarks.faults.outages import measure_postgresql, measure_redis
from benchmarks.faults.rolling import measure_rolling
from benchmarks.faults.world import Row, load
from benchmarks.figures import Table

_Measure = Callable[[], Awaitable[Sequence[Row]]]
PARTS = ("crashes", "rolling", "redis", "postgresql", "slow", "noisy", "changes", "hangups", "revocations")


def main() -> None:
    """Run the measurements and print their table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--only", type=_names, default=PARTS, help=f"parts, comma-separated: {','.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of it: shows that it runs, not what it costs")
    options = parser.parse_args()
    began = time.monotonic()
    rows: list[tuple[str, ...]] = []
    for name, measure in _parts(1 if options.quick else 10).items():
        if name in options.only:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            with contextlib.redirect_stdout(sys.stderr):  # replicas print the end of their logs
                found = anyio.run(measure)
            rows += [(row.promise, row.what, row.figure, row.bar, load()) for row in found]
    how = (
        "Clients, upstream, two replicas, PostgreSQL and Redis share the machine. Times hold for its load (the last "
        "column, one minute's average), and rates do not carry over."
    )
    notes = (how, f"The run took {time.monotonic() - began:.0f} s.")
    columns = ("", "what", "figure", "wanted", "load")
    print(Table(title="Faults", columns=columns, rows=tuple(rows), notes=notes).render())


def _parts(tenths: int) -> Mapping[str, _Measure]:
    return {
        "crashes": lambda: measure_crashes(2 * tenths),
        "rolling": lambda: measure_rolling(max(1, tenths // 3)),
        "redis": lambda: measure_redis(6.0 * tenths),
        "postgresql": lambda: measure_postgresql(6.0 * tenths),
        "slow": lambda: measure_slow_upstream(max(1, tenths // 2)),
        "noisy": lambda: measure_noisy_tenant(max(1, tenths // 2)),
        "changes": lambda: measure_changes(10 * tenths),
        "hangups": lambda: measure_hangups(10 * tenths),
        "revocations": lambda: measure_revocations(2 * tenths),
    }


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := set(names) - set(PARTS):
        raise argparse.ArgumentTypeError(f"unknown part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return names


if __name__ == "__main__":
    main()
