"""Comparison of whole import results with those of another checkout, for changes that must not change any.

`python -m benchmarks.openapi.results TREE` imports the documents of `../shared/specs`, or the files and folders given
after it, with the code of both checkouts and several options. It prints what differs, and then exits with 1.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.openapi.child import TREE, URL, Run, read_files, run_child
from gateway.domain.sources import Compilation
from gateway.openapi.options import ImportOptions

_OPTIONS = {
    "tools": ImportOptions(base_url=URL),
    "tools, query tools and output schemas": ImportOptions(base_url=URL, output_schemas=True, outline=True),
    "query tools, own servers": ImportOptions(document_url=f"{URL}/v1/openapi.json", outline=True, is_listed=False),
}


def main() -> None:
    """Compare the results of both checkouts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.openapi.results", description=__doc__)
    parser.add_argument("tree", type=Path, help="the other checkout")
    parser.add_argument("documents", nargs="*", type=Path, help="files or folders (default: ../shared/specs)")
    options = parser.parse_args()
    compared, different = 0, 0
    for file in read_files(options.documents):
        for name, chosen in _OPTIONS.items():
            mine, other = (run_child(file, chosen, tree) for tree in (TREE, options.tree))
            compared += 1
            if mine.digest != other.digest:
                different += 1
                print(f"{file.name} ({name}): {', '.join(_differences(mine, other)) or 'the messages'}")
    print(f"{compared} imports compared, {different} differ")
    sys.exit(different > 0)


def _differences(mine: Run, other: Run) -> Iterator[str]:
    """The parts of the results that differ, and the tools."""
    one, two = mine.answer.compilation(), other.answer.compilation()
    if one is None or two is None:
        yield f"{mine.answer.refusal or mine.answer.crash} / {other.answer.refusal or other.answer.crash}"
        return
    yield from (name for name in Compilation.__slots__ if getattr(one, name) != getattr(two, name))
    tools = {made.tool: made for made in two.operations}
    yield from (made.tool for made in one.operations if tools.get(made.tool) != made)


if __name__ == "__main__":
    main()
