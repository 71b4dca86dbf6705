"""Checks of made-up bodies for every tool of real documents: which are made on the event loop, and what they cost.

`python -m benchmarks.validation` reads the documents of `../shared/specs` and `../shared/look-3/documents`, or the
files and folders that it is given. Each body conforms to its schema, as `jsonschema-rs` finds without any limit.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.figures import Table
from benchmarks.openapi.child import SPECS, TREE, URL, DocumentFile, read_files
from benchmarks.validation.bodies import NoValue, conforming
from gateway.definitions.json_schema.dialects import compile_schema
from gateway.definitions.json_schema.validator import DeferredCheck, compile_input
from gateway.openapi.compiler import compile_document
from gateway.openapi.document.archive import unpack
from gateway.openapi.document.bundle import bundle
from gateway.openapi.options import ImportOptions

DOCUMENTS = TREE / ".." / "shared" / "look-3" / "documents"
FORMS: Sequence[tuple[int, int]] = ((40, 2), (400, 4), (4_000, 12))
"""Number of optional parts and of elements of a list, for small, usual and large bodies."""

_SHORT_S = 0.001
_REPEATS = 3
_COLUMNS = (
    *("document", "tools", "bodies", "largest kB", "check < 1 ms", "on the loop", "of those < 1 ms", "metered"),
    *("child", "refused", "slowest check µs"),
)


@dataclass(slots=True)
class Seen:
    """The bodies of one document."""

    name: str
    counts: Counter[str] = field(default_factory=Counter[str])
    largest: int = 0
    slowest_s: float = 0.0

    def row(self) -> tuple[str, ...]:
        """The row of the table."""
        counts = self.counts
        share = 100 * counts["short and here"] / counts["short"] if counts["short"] else 100.0
        numbers = [counts[one] for one in ("tools", "bodies")]
        return (
            self.name,
            *(f"{number:,}" for number in numbers),
            f"{self.largest / 1000:.1f}",
            *(f"{counts[one]:,}" for one in ("short", "here")),
            f"{share:.2f} %",
            *(f"{counts[one]:,}" for one in ("metered", "child", "refused")),
            f"{self.slowest_s * 1e6:,.0f}",
        )


def main() -> None:
    """Measure the documents and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=2, help="bodies of each size for one tool")
    asked = parser.parse_args()
    rows = [measure(file, asked.seeds) for file in read_files(asked.documents or [SPECS, DOCUMENTS])]
    whole = Seen(f"{len(rows)} documents")
    for one in rows:
        whole.counts += one.counts
        whole.largest, whole.slowest_s = max(whole.largest, one.largest), max(whole.slowest_s, one.slowest_s)
    table = Table(title="Checks of bodies", columns=_COLUMNS, rows=tuple(one.row() for one in (*rows, whole)))
    print(table.render())
    print(f"\n{whole.counts['none']:,} of {whole.counts['asked']:,} bodies were not found: pattern or contradiction.")


def measure(file: DocumentFile, seeds: int = 1) -> Seen:
    """Check bodies of every tool of one document."""
    seen = Seen(file.name)
    for definition in definitions(file):
        seen.counts["tools"] += 1
        schema: dict[str, Any] = msgspec.json.decode(definition)["inputSchema"]
        plain, validator = compile_schema(schema), compile_input(definition)
        for body in bodies(schema, plain.is_valid, seeds, seen.counts):
            duration = min(_duration(plain, body) for _ in range(_REPEATS))
            is_metered = not validator.is_bounded(body)
            if is_metered:
                validator.prepare()  # as the gateway does before it takes a child process
            _count(seen, body, duration, validator.check(body), is_metered=is_metered)
    return seen


def definitions(file: DocumentFile) -> Iterator[bytes]:
    """Yield the definition of each tool with its full input schema."""
    raw = bundle(unpack(file.raw), entry=None).document if file.form.is_archive else file.raw
    for made in compile_document(raw, ImportOptions(base_url=URL)).operations:
        yield made.definition if made.input_schema is None else b'{"inputSchema":' + made.input_schema + b"}"


def bodies(schema: dict[str, Any], is_valid: Any, seeds: int, counts: Counter[str]) -> Iterator[Any]:
    """Yield bodies of each size."""
    for room, longest in FORMS:
        for seed in range(seeds):
            counts["asked"] += 1
            try:
                yield conforming(schema, is_valid, seed, room=room, longest=longest)
            except NoValue:
                counts["none"] += 1


def _duration(plain: Any, body: Any) -> float:
    started = time.perf_counter()
    plain.is_valid(body)
    return time.perf_counter() - started


def _count(seen: Seen, body: Any, duration: float, found: object, *, is_metered: bool) -> None:
    is_here = not isinstance(found, DeferredCheck)
    is_short = duration < _SHORT_S
    seen.counts.update(
        bodies=1,
        short=is_short,
        here=is_here,
        child=not is_here,
        refused=is_here and found != (),
        metered=is_metered,
        **{"short and here": is_short and is_here},
    )
    seen.largest = max(seen.largest, len(msgspec.json.encode(body)))
    seen.slowest_s = max(seen.slowest_s, duration)


if __name__ == "__main__":
    main()
