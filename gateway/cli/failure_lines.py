"""Failures of commands, and warnings and tracebacks that Python writes to standard error, as lines of a JSON log."""

import logging
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from types import TracebackType
from typing import Any

import click
import structlog

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure, failure_from_any
from gateway.telemetry.logs import configure_logging

log = structlog.get_logger(__name__)


class _LoggedFailure(Failure):
    """A failure that is printed as a log line."""

    def show(self) -> None:
        """Write the log line to standard error."""
        faults = {"faults": [asdict(fault) for fault in self.faults]} if self.faults else {}
        log.error("command_failed", reason=self.message, exit_code=int(self.exit_code), **faults)


@contextmanager
def json_failures() -> Generator[None]:
    """Convert exceptions of the block to failures that are printed as one log line.

    Warnings and uncaught exceptions of the process are logged from then on, too.
    """
    _log_warnings_and_exceptions()
    try:
        yield
    except (click.exceptions.Exit, click.Abort, _LoggedFailure):
        raise
    except (KeyboardInterrupt, EOFError):
        raise click.Abort from None  # click would write an empty line
    except Exception as error:
        failure = failure_from_any(error)
        raise _LoggedFailure(failure.message, ExitCode(failure.exit_code), faults=failure.faults) from error


def _log_warnings_and_exceptions() -> None:
    """Log warnings and uncaught exceptions, which Python would write to standard error."""
    configure_logging(level="info", as_json=True)
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught
    sys.unraisablehook = lambda found: log.error(
        "exception_ignored", object=repr(found.object), exc_info=_exception_of(found)
    )
    threading.excepthook = lambda found: log.error("thread_failed", exc_info=_exception_of(found))


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.critical("exception_uncaught", exc_info=(kind, error, trace))


def _exception_of(found: "sys.UnraisableHookArgs | threading.ExceptHookArgs") -> Any:
    return (found.exc_type, found.exc_value, found.exc_traceback)
