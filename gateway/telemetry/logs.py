"""Structured logs on standard error: one JSON object per line, or console output."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import orjson
import structlog

from gateway.telemetry.log_context import add_labels

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logging(*, level: str, as_json: bool) -> None:
    """Send structlog's events, and the standard library's from `warning` up, to standard error in one form."""
    stamp: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,  # values that operators' own handlers bind
        add_labels,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    render: structlog.typing.Processor = (
        _render_json
        if as_json
        else structlog.dev.ConsoleRenderer(
            exception_formatter=structlog.dev.plain_traceback  # others print local variables, which may hold secrets
        )
    )
    structlog.configure(
        processors=[*stamp, render],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=stamp, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render]
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(_LEVELS[level], logging.WARNING))


def _render_json(_: object, __: str, event: MutableMapping[str, Any]) -> str:
    try:
        return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError):  # integers beyond 64 bits, lone surrogates
        return orjson.dumps({str(key): ascii(value) for key, value in event.items()}).decode()
