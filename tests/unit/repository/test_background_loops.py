"""Loops that run beside requests: each is restarted after a failure, is reported by `/readyz`, and ends at shutdown."""

import ast
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[3] / "gateway"
_OWNED = {
    "app/python/provider/link.py:_keep_connected": "runs in a program of tools, whose `serve` raises its failure",
    "app/python/provider/link.py:_serve_connection": "ends with the connection",
    "embedded/supervisor.py:_restart_forever": "its failure ends the gateway",
    "redis/event_bus.py:_receive_until_failure": "a part of `_listen`",
    "redis/live/inboxes.py:_read": "the whole work of the supervised `read`",
    "redis/wakeups.py:send_changes": "the event bus supervises it",
    "web/providers/endpoint.py:_read": "ends with the connection",
}
"""Endless loops that no supervisor of their module starts, with the reason."""

_STARTS = frozenset({"open", "spawn_loop"})


def test_every_endless_loop_is_supervised() -> None:
    """Ours: a loop that ended with an exception would stop its work without notice (SRV-4)."""
    found = {
        f"{path.relative_to(_ROOT)}:{function.name}"
        for path, tree in _modules()
        for function in _functions(tree)
        if any(_is_endless(loop) for loop in ast.walk(function) if isinstance(loop, ast.While))
        and function.name not in _started(tree, _STARTS)
    }

    assert found == _OWNED.keys()


def test_every_renewal_survives_an_exception() -> None:
    """Ours: a loop that runs while there is something to renew goes on after the failure of one (SRV-4)."""
    unguarded = [
        f"{path.relative_to(_ROOT)}:{function.name}"
        for path, tree in _modules()
        for function in _functions(tree)
        if function.name in _started(tree, {"spawn", "_spawn"})
        for loop in ast.walk(function)
        if isinstance(loop, ast.While) and _calls(loop) & {"sleep"} and not _catches_all(loop)
    ]

    assert unguarded == []


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(_ROOT.rglob("*.py")):
        if "cli" not in path.relative_to(_ROOT).parts:
            yield path, ast.parse(path.read_text())


def _functions(tree: ast.Module) -> Iterator[ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef))


def _is_endless(loop: ast.While) -> bool:
    """True for `while True` that waits, or awaits at all, and neither returns, breaks nor yields."""
    ends = any(isinstance(node, ast.Return | ast.Break | ast.Yield) for node in ast.walk(loop))
    awaits = any(isinstance(node, ast.Await | ast.AsyncFor) for node in ast.walk(loop))
    return isinstance(loop.test, ast.Constant) and awaits and not ends


def _started(tree: ast.Module, starts: set[str] | frozenset[str]) -> set[str]:
    """Names of the functions that are arguments of a call that starts tasks."""
    return {
        name.attr if isinstance(name, ast.Attribute) else name.id
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in starts
        for argument in call.args
        for name in ast.walk(argument)
        if isinstance(name, ast.Attribute | ast.Name)
    }


def _calls(node: ast.AST) -> set[str]:
    return {
        call.func.attr for call in ast.walk(node) if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    }


def _catches_all(loop: ast.While) -> bool:
    return any(
        isinstance(handler, ast.ExceptHandler) and isinstance(handler.type, ast.Name) and handler.type.id == "Exception"
        for handler in ast.walk(loop)
    )
