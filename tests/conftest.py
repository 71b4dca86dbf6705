"""Fixtures for every test: the event loop, real servers, an empty Redis, a migrated database."""

import gc
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, cast

import pytest
import structlog

from tests.support.certificates import unused_authority
from tests.support.compiled_statements import share_compiled_statements
from tests.support.environment import forget_callers_variables
from tests.support.examples import choose_examples
from tests.support.loops import anyio_backend, nothing_unseen
from tests.support.memory import make_folder
from tests.support.python_command import offered_command, use_command
from tests.support.quick import stop_refills, without_refills
from tests.support.reports import report_less
from tests.support.servers import TestDatabase, TestServers, running_servers
from tests.support.shuffle import shuffled
from tests.support.worker_starts import fork_from, start_as_usual
from tests.support.workers import worker_template

__all__ = ["anyio_backend", "nothing_unseen"]  # fixtures of `tests/support/loops.py`

_LAST = -1000
_PLAIN: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
]
"""The default but for `rich`, which takes 200 ms to print a traceback."""

_COLLECT_AT = 10_000, 20, 50
"""Allocations before a garbage collection, as few as a gateway that serves has: the default costs 4 % of all CPU."""

choose_examples()


@pytest.fixture(scope="session")
def authority() -> Path:
    """A certificate that no server shows."""
    return unused_authority()


@pytest.fixture(autouse=True)
def trust(monkeypatch: pytest.MonkeyPatch, authority: Path) -> None:
    """Trust one authority: the first outbound connection reads all trusted authorities, and those of this machine take
    50 ms.

    Where tests fetch packages the machine's are trusted: their folders have a fixture of this name that does nothing.
    """
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))


@pytest.fixture(scope="session", autouse=True)
def forked_workers() -> None:
    """Workers of gateways in this process are forked from one that has imported everything."""
    fork_from(worker_template)


@pytest.fixture
def real_workers() -> Iterator[None]:
    """Workers are started as in production, for tests that are about them."""
    start_as_usual()
    yield
    fork_from(worker_template)


@pytest.fixture(scope="session")
def servers() -> Iterator[TestServers]:
    """PostgreSQL and Redis of this test process."""
    with running_servers() as started:
        yield started


@pytest.fixture
def redis_url(servers: TestServers) -> str:
    """A Redis without any key."""
    return servers.empty_redis()


@pytest.fixture
def database(servers: TestServers) -> Iterator[TestDatabase]:
    """A freshly migrated database by all its URLs."""
    with servers.database() as created:
        yield created


@pytest.fixture
def database_url(database: TestDatabase) -> str:
    """A freshly migrated database as the gateway's own role sees it."""
    return database.app_url


@pytest.fixture
def migration_database_url(database: TestDatabase) -> str:
    """The same database as its owner sees it."""
    return database.owner_url


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a case by its argument where its value may differ between the processes that collect it."""
    is_loud = isinstance(val, bytes) or (isinstance(val, str) and len(val) > 60)
    return argname if is_loud else None


def _keep_bytecode() -> None:
    """Let the processes that tests start read what one of them has compiled: five hundred modules are a second each.

    Programs that change sources under the bytecode set `never` (`tests/guards.py`).
    """
    if os.environ.get("PYTHONDONTWRITEBYTECODE") != "never":
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _write_to_memory(config: pytest.Config) -> None:
    """Let this process and all it starts keep its files in memory until it exits, unless another place is set."""
    if "TMPDIR" in os.environ or (folder := make_folder()) is None:
        return
    os.environ["TMPDIR"] = str(folder)
    config.option.basetemp = config.option.basetemp or folder / "t"  # short, for the paths of sockets
    tempfile.tempdir = None  # it may have been asked before
    Finalize(None, shutil.rmtree, (folder, True), exitpriority=_LAST)  # after multiprocessing's own folder in it


def _forgo_sniffio() -> None:
    """Let httpcore fail at once to import a package that is not installed: it tries several times for each request."""
    if find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment]  # an import of it fails


def _log_warnings_only() -> None:
    """Give the root logger a handler: else a server of the SDK for Python gives it one of `rich`, at level INFO.

    That one formats a line for each request of an HTTP client, which took 10 to 20 % of the CPU of a test process.
    """
    logging.getLogger().addHandler(cast("logging.Handler", logging.lastResort))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Have the test processes forked from one that has imported the gateway."""
    stack = ExitStack()
    config.add_cleanup(stack.close)
    command = stack.enter_context(offered_command())
    for spec in specs:
        spec.python = command or spec.python


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests marked `early` first, and the others in the order of `SHUFFLE`, if it is set."""
    if seed := os.environ.get("SHUFFLE"):
        items[:] = shuffled(items, int(seed))
    if os.environ.get("QUICK"):
        without_refills(items)
    items.sort(key=lambda item: item.get_closest_marker("early") is None)


def pytest_collection_finish() -> None:
    """Leave what the collection made out of all later garbage collections; forked servers share it."""
    gc.freeze()
    gc.set_threshold(*_COLLECT_AT)
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """A transport that a failing test left open is reported, not raised: uvloop's loop never closes if that raises."""
    gc.disable()  # what is imported and collected stays
    forget_callers_variables()
    _forgo_sniffio()
    _log_warnings_only()
    _keep_bytecode()
    _write_to_memory(config)
    structlog.configure(processors=_PLAIN)
    if os.environ.get("QUICK"):
        stop_refills()
    if hasattr(config, "workerinput"):
        use_command()
    share_compiled_statements()
    report_less(config)
    config.addinivalue_line("filterwarnings", "default:unclosed resource <:ResourceWarning")
