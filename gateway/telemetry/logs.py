"""Structured logs on standard error: one JSON object per line, or console output.

A log call never raises and never waits: a line that cannot be rendered is replaced by a shorter one, and lines are
written by a thread (`gateway.telemetry.line_writer`).
"""

import logging
import sys
from collections.abc import MutableMapping, Sequence
from functools import partial
from typing import Any

import orjson
import structlog

from gateway.telemetry.line_writer import LineWriter
from gateway.telemetry.log_context import add_labels
from gateway.telemetry.standard_streams import writer_of_errors

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logging(*, level: str, as_json: bool) -> LineWriter:
    """Send structlog's events, and the standard library's from `warning` up, to standard error in one form.

    Returns the writer of the lines, which counts those that are lost.
    """
    stamp: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,  # values that operators' own handlers bind
        add_labels,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    render = _render_json if as_json else _ConsoleRenderer()
    writer = writer_of_errors()
    writer.notice = partial(_render_notice, [*stamp, render])
    structlog.configure(
        processors=[partial(_render, [*stamp, render])],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: _LineLogger(writer),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers = [_LineHandler(writer, stamp, render)]
    root.setLevel(max(_LEVELS[level], logging.WARNING))
    return writer


def configure_program_logging(*, level: str) -> None:
    """Send structlog's events from this level up to standard error, unless the program has configured structlog.

    Without a configuration, structlog writes every event to standard output, which may carry MCP messages. The loggers
    of the standard library stay as the program, or its test runner, has them.
    """
    if not structlog.is_configured():
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
            logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # a test runner replaces the stream
        )


class _LineLogger:
    """Puts rendered events into the queue of a writer."""

    def __init__(self, writer: LineWriter) -> None:
        self._writer = writer

    def msg(self, line: str) -> None:
        """Queue one line."""
        self._writer.write(f"{line}\n")

    log = debug = info = warn = warning = error = critical = fatal = failure = err = exception = msg


class _LineHandler(logging.StreamHandler[LineWriter]):
    """Puts records of the standard library into the same queue."""

    def __init__(
        self, writer: LineWriter, stamp: Sequence[structlog.typing.Processor], render: structlog.typing.Processor
    ) -> None:
        super().__init__(writer)
        last = partial(_render, [structlog.stdlib.ProcessorFormatter.remove_processors_meta, render])
        self.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=stamp, processors=[last]))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # the name of the standard library
        """Queue a record whose text cannot be made: its arguments do not fit, or raise when they are written."""
        self.stream.write(f"{_render_failure(str(record.msg), sys.exception())}\n")


class _ConsoleRenderer:
    """Renders lines for a terminal; control characters in values, which callers may choose, are escaped."""

    def __init__(self) -> None:
        self._render = structlog.dev.ConsoleRenderer(
            exception_formatter=structlog.dev.plain_traceback  # others print local variables, which may hold secrets
        )

    def __call__(self, logger: object, method: str, event: MutableMapping[str, Any]) -> str:
        for name, value in event.items():
            if name != "exception" and isinstance(value, str) and not value.isprintable():
                event[name] = ascii(value)
        return self._render(logger, method, event)


def _render(
    chain: Sequence[structlog.typing.Processor], logger: object, method: str, event: MutableMapping[str, Any]
) -> str:
    """Run the processors, of which the last returns the line; values may raise when they are written as text."""
    name = event.get("event")
    try:
        return _run(chain, logger, method, event)
    except Exception as error:  # a failure must not reach the caller, whose work is not the log's
        return _render_failure(str(name) if isinstance(name, str) else "", error)


def _run(
    chain: Sequence[structlog.typing.Processor], logger: object, method: str, event: MutableMapping[str, Any]
) -> str:
    done: Any = event
    for processor in chain:
        done = processor(logger, method, done)
    return str(done)


def _render_notice(chain: Sequence[structlog.typing.Processor], lost: int) -> str:
    line = _render(chain, None, "warning", {"event": "log_lines_lost", "lines": lost})
    return f"{line}\n"


def _render_failure(event: str, error: BaseException | None) -> str:
    """Return a line without the values that could not be rendered."""
    failed = {"event": "log_line_not_rendered", "of": ascii(event), "error": type(error).__name__, "level": "error"}
    return orjson.dumps(failed).decode()


def _render_json(_: object, __: str, event: MutableMapping[str, Any]) -> str:
    try:
        return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError):  # integers beyond 64 bits, lone surrogates
        return orjson.dumps({str(key): _as_ascii(value) for key, value in event.items()}).decode()


def _as_ascii(value: object) -> str:
    return value if isinstance(value, str) and value.isascii() else ascii(value)
