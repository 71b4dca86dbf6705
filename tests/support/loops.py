"""The event loop of the tests: production's, except that nothing which goes wrong unseen stays unseen.

A callback that raises, or a task whose error is never retrieved, reaches the loop's exception handler. anyio's test
runner raises such an error out of the fixture or test that happens to run next; raised out of an asynchronous fixture
it leaves that fixture half made, and the cancel scopes in it cancel every later test of the process. So the errors are
printed when they come and raised at the end of the test during which they came.
"""

import asyncio
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvloop

_unseen: list[Exception] = []
_REPORTS_CLOSED_PIPES = sys.version_info < (3, 11, 7)
"""Older releases report the closed standard input of a program that ended, though none need wait for it."""


class TestLoop(uvloop.Loop):
    """A loop that keeps unretrieved errors, whatever handler is requested."""

    __test__ = False

    def set_exception_handler(
        self, handler: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None
    ) -> None:
        """Keep our own handler."""
        super().set_exception_handler(_keep)


def unseen() -> list[Exception]:
    """The errors that came since the last question."""
    found = list(_unseen)
    _unseen.clear()
    return found


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Callable[[], TestLoop]]]:
    """The event loop that production uses, and what goes wrong on it unseen."""
    return "asyncio", {"loop_factory": TestLoop}


@pytest.fixture(autouse=True)
def nothing_unseen() -> Iterator[None]:
    """A failure of the event loop that no task awaits is an error of the test during which it came."""
    unseen()
    yield
    if errors := unseen():
        raise ExceptionGroup("failures on the event loop that no task awaited", errors)


def _keep(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if not isinstance(error, Exception):
        loop.default_exception_handler(context)
        return
    if (
        _REPORTS_CLOSED_PIPES
        and isinstance(error, BrokenPipeError)
        and isinstance(context.get("future"), asyncio.Future)
    ):
        return
    notified = {name: value for name, value in context.items() if name not in {"exception", "message"}}
    print(f"unseen on the event loop: {context.get('message')} {notified}", file=sys.stderr, flush=True)
    traceback.print_exception(error, file=sys.stderr)
    _unseen.append(error)
