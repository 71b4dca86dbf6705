"""Calls by which one tenant's work stops all (`python -m tests.refused_calls`); no exceptions but the reasons below.

Every name that starts a thread, or that uses the default executor of the event loop, is refused in `gateway`: work goes
through `gateway.domain.fairness.threads.run_in_thread` with a kind of `thread_kinds`, so that each pool has a size and
a share for each tenant. JSON without a declared type is decoded by `gateway.domain.json_text`, because `msgspec`
alone takes 20 µs for some floats.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

REFUSED: Mapping[str, str] = {
    "anyio.to_thread": "forty threads for all tenants",
    "anyio.Path": "uses anyio.to_thread",
    "anyio.open_file": "uses anyio.to_thread",
    "anyio.connect_tcp": "looks names up with anyio.to_thread",
    "anyio.getaddrinfo": "uses anyio.to_thread",
    "asyncio.to_thread": "the default executor",
    "asyncio.open_connection": "looks names up in the default executor, or in four threads of uvloop",
    "concurrent.futures.ThreadPoolExecutor": "threads that the exit of the process waits for",
    "concurrent.futures.ProcessPoolExecutor": "processes without limits",
    "multiprocessing": "processes without limits",
    "socket.getaddrinfo": "blocks its thread",
    "starlette.background": "runs plain functions with anyio.to_thread",
    "starlette.concurrency": "uses anyio.to_thread",
    "starlette.responses.FileResponse": "uses anyio.to_thread",
    "starlette.staticfiles": "uses anyio.to_thread",
    "threading.Thread": "a thread that nothing counts",
}
METHODS: Mapping[str, str] = {
    "getaddrinfo": "looks names up in the default executor, or in four threads of uvloop",
    "getnameinfo": "looks names up in the default executor, or in four threads of uvloop",
    "run_in_executor": "the default executor",
}
"""Methods of event loops."""

ALLOWED: Mapping[str, Mapping[str, str]] = {
    "gateway/cli/client/name_completion.py": {"threading.Thread": "one of a command that completes a name"},
    "gateway/app/python/imports.py": {
        "concurrent.futures.ThreadPoolExecutor": "one thread, while a program imports a document before it serves"
    },
    "gateway/app/workers/supervisor.py": {"multiprocessing": "workers, whose number the operator sets"},
    "gateway/domain/fairness/threads.py": {"threading.Thread": "the threads of all kinds"},
    "gateway/upstream/egress/resolver.py": {"socket.getaddrinfo": "runs in a thread of the kind NAME_LOOKUPS"},
    "gateway/telemetry/line_writer.py": {"threading.Thread": "one of the process, which writes its log"},
    "gateway/telemetry/traces.py": {"threading.Thread": "one, at the end of the process"},
    "gateway/app/python/hidden_names.py": {
        "concurrent.futures.ThreadPoolExecutor": "one thread, while operators' code registers a primitive"
    },
    "gateway/protocol/stdio/streams.py": {"threading.Thread": "two of a process with one client"},
    "gateway/cli/output/progress.py": {"threading.Thread": "one of a command"},
}


DECODER = "gateway/domain/json_text.py"
"""The module whose decoders read JSON without a declared type."""


def complaints(root: Path) -> Iterator[str]:
    """Every refused call, every permission that nothing uses, and every plain function that serves a route."""
    unused = {(path, name) for path, names in ALLOWED.items() for name in names}
    for path in sorted((root / "gateway").rglob("*.py")):
        shown = str(path.relative_to(root))
        tree = ast.parse(path.read_text())
        names = _imported(tree)
        for line, name, reason in _uses(tree, names):
            unused.discard((shown, name))
            if name not in ALLOWED.get(shown, {}):
                yield f"{shown}:{line} {name}: {reason}; use run_in_thread"
        if shown != DECODER:
            for line in _untyped(tree, names):
                yield f"{shown}:{line} msgspec.json: takes 20 µs for some floats; use decode_json or decode_object"
        for line, name in _routes(tree, names):
            yield f"{shown}:{line} {name}: a plain function of a route runs with anyio.to_thread"
    yield from (f"{path} {name}: is allowed, but not used" for path, name in sorted(unused))


def _uses(tree: ast.Module, names: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    """Line, name and reason of each use of a refused name. An import counts, and so does an attribute of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _refused(node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield from _refused(node.lineno, f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Attribute):
            dotted = _dotted(node, names)
            yield from _refused(node.lineno, dotted or "")
            if node.attr in METHODS and dotted not in REFUSED:
                yield node.lineno, node.attr, METHODS[node.attr]


def _imported(tree: ast.Module) -> Mapping[str, str]:
    """The dotted name of each imported name."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _refused(line: int, name: str) -> Iterator[tuple[int, str, str]]:
    """The refused name that this dotted name is, or is below."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        found = ".".join(parts[:length])
        if found in REFUSED:
            yield line, found, REFUSED[found]


def _dotted(node: ast.expr, names: Mapping[str, str]) -> str | None:
    """The dotted name of an expression, with imported names in full; None for other expressions."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value, names)) is not None:
        return f"{before}.{node.attr}"
    return None


def _untyped(tree: ast.Module, names: Mapping[str, str]) -> Iterator[int]:
    """The lines of calls of `msgspec.json` that decode values of any type."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        given = [keyword.value for keyword in node.keywords if keyword.arg == "type"]
        name = _dotted(node.func, names)
        if name == "msgspec.json.Decoder":
            given += node.args[:1]
        elif name != "msgspec.json.decode":
            continue
        if not given or re.search(r"\b(?:Any|object)\b", ast.unparse(given[0])):
            yield node.lineno


def _routes(tree: ast.Module, names: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """The plain functions of this module that are endpoints of Starlette routes."""
    plain = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _dotted(node.func, names) == "starlette.routing.Route":
            for given in (*node.args, *(keyword.value for keyword in node.keywords)):
                name = getattr(given, "id", getattr(given, "attr", ""))
                if name in plain:
                    yield node.lineno, name


def main() -> None:
    """Print the complaints; the exit status is 1 if there is one."""
    found = list(complaints(Path(__file__).parents[1]))
    print("\n".join(found) or "no refused calls")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
