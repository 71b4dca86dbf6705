"""Lookup of the functions that operators registered in Python."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gateway.domain.primitives import Family
from gateway.handlers.python.context import Context
from gateway.handlers.python.limits import TIMEOUT_S
from gateway.handlers.python.signatures import CompletionFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonHandler:
    """The function of one primitive; `is_async` is True if it runs on the event loop, otherwise it runs in a thread.

    `complete` completes the arguments of a prompt or the variables of a template. `timeout_s` limits both
    functions; a completion has at most ten seconds.
    """

    function: Callable[[Context], object]
    is_async: bool
    timeout_s: float = TIMEOUT_S
    complete: CompletionFunction | None = None


class PythonHandlers(Protocol):
    """The primitives registered in Python."""

    def find(self, family: Family, name: str, slug: str) -> PythonHandler | None:
        """Return the function of a tenant's primitive, or None; `name` of a resource is its URI or URI template."""
        ...
