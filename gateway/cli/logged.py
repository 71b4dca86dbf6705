"""Commands whose streams a log collector reads: with `GATEWAY_LOG_FORMAT=json` they hold one JSON object a line."""

import json
import logging
import os
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from types import TracebackType
from typing import Any

import click
import structlog

from gateway.cli.exits import Exit
from gateway.cli.failures import Failure, failure_from_any
from gateway.settings import PREFIX
from gateway.telemetry.logs import configure_logging

log = structlog.get_logger(__name__)


class LoggedCommand(click.Command):
    """A command that runs a part of the gateway; its failures are log lines where logs are JSON."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the options."""
        with _failures_as_lines():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _failures_as_lines():
            return super().invoke(ctx)


def logs_json() -> bool:
    """JSON was asked for by name. The environment is read here, as a setting beside it may be broken."""
    return os.environ.get(f"{PREFIX}LOG_FORMAT") == "json"


def show_line(value: Mapping[str, object]) -> None:
    """Print an object on one line of ASCII, which no collector splits."""
    click.echo(json.dumps(value))


class _LoggedFailure(Failure):
    """A failure that is shown as a line of the log."""

    def show(self) -> None:
        """Write the line to standard error."""
        faults = {"faults": [asdict(fault) for fault in self.faults]} if self.faults else {}
        log.error("command_failed", reason=self.message, exit_code=int(self.exit_code), **faults)


@contextmanager
def _failures_as_lines() -> Generator[None]:
    if not logs_json():
        yield
        return
    _log_the_rest()
    try:
        yield
    except (click.exceptions.Exit, click.Abort, _LoggedFailure):
        raise
    except (KeyboardInterrupt, EOFError):
        raise click.Abort from None  # click itself would write an empty line
    except Exception as error:
        failure = failure_from_any(error)
        raise _LoggedFailure(failure.message, Exit(failure.exit_code), faults=failure.faults) from error


def _log_the_rest() -> None:
    """Log what Python itself writes as text: warnings, and exceptions that nothing catches."""
    configure_logging(level="info", as_json=True)
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught
    sys.unraisablehook = lambda found: log.error("exception_ignored", object=repr(found.object), exc_info=_of(found))
    threading.excepthook = lambda found: log.error("thread_failed", exc_info=_of(found))


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.critical("exception_uncaught", exc_info=(kind, error, trace))


def _of(found: "sys.UnraisableHookArgs | threading.ExceptHookArgs") -> Any:
    return (found.exc_type, found.exc_value, found.exc_traceback)
