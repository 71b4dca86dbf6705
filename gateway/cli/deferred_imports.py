"""Omits third-party modules that libraries import only for features that the gateway does not use.

Only the program `gateway` calls `defer_imports`, before it imports the gateway. A program that embeds a gateway keeps
its own imports.
"""

import sys
import threading
from collections.abc import Collection
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Final

_OPTIONAL: Final = {
    "structlog": ("rich", "better_exceptions"),  # formatted tracebacks on a console; the gateway prints plain ones
    "redis.asyncio": ("opentelemetry.sdk.metrics",),  # metrics of the client, which are disabled
}
"""Optional dependencies by library. The library imports each dependency if it is installed."""
_PACKAGES: Final = ("mcp", "mcp.server", "sqlalchemy.ext.asyncio")
"""Packages whose `__init__` is postponed, because it imports an HTTP client, a framework or an ORM (decision 26)."""
_UNUSED: Final = "httpx._main"
"""The command line of httpx. Where Rich is installed, httpx imports it with 100 modules, which takes 40 ms."""
_INIT_STARTED: Final = "__gateway_init_started__"


_init_lock = threading.RLock()
"""Held while a postponed `__init__` runs. Other threads wait until it has run; the running thread reads the names
defined so far, as in a circular import.
"""


class _LazyPackage(ModuleType):
    """A package whose `__init__` runs when one of its names is first read, not when a submodule is imported."""

    def __getattr__(self, name: str) -> object:
        if not name.startswith("__") and find_spec(f"{self.__name__}.{name}") is not None:
            return import_module(f"{self.__name__}.{name}")
        if not name.startswith("__") or name == "__all__":
            with _init_lock:
                self._run()
                if name in self.__dict__:
                    found: object = self.__dict__[name]
                    return found
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def _run(self) -> None:
        spec = self.__spec__
        if _INIT_STARTED not in self.__dict__ and spec is not None and spec.loader is not None:
            self.__dict__[_INIT_STARTED] = True
            spec.loader.exec_module(self)
            object.__setattr__(self, "__class__", ModuleType)


def defer_imports(libraries: Collection[str] = (*_PACKAGES, *_OPTIONAL)) -> None:
    """Make the packages lazy, and import the other libraries without their optional modules.

    The optional modules can still be imported later.
    """
    for name in _PACKAGES:
        if name in libraries:
            _postpone(name)
    for library, optional in _OPTIONAL.items():
        if library in libraries:
            _import_without(library, optional)


def omit_unused() -> None:
    """Let httpx be imported without its command line, as where its optional dependencies are absent."""
    sys.modules.setdefault(_UNUSED, None)  # type: ignore[arg-type]  # None makes its import fail


def _postpone(name: str) -> None:
    spec = find_spec(name)
    if name in sys.modules or spec is None:
        return
    package = module_from_spec(spec)
    package.__class__ = _LazyPackage
    sys.modules[name] = package
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)


def _import_without(library: str, optional: tuple[str, ...]) -> None:
    hidden = [name for name in optional if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None makes its import fail
    try:
        import_module(library)
    finally:
        for name in hidden:
            del sys.modules[name]
