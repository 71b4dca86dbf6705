"""OpenTelemetry span export, active if the environment sets an OTLP endpoint and the extra `traces` is installed."""

import importlib
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, cast

import structlog

from gateway.settings import Settings
from gateway.telemetry.distribution import VERSION, install_line
from gateway.telemetry.traces import SpanProvider, Traces

log = structlog.get_logger(__name__)

_ENDPOINT_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_EXPORTER: Final = "gateway.telemetry.otlp"


def build_traces(
    settings: Settings, environ: Mapping[str, str] = os.environ, *, exporter: str = _EXPORTER
) -> Traces | None:
    """Return unopened traces; None if export is not configured or the extra is not installed."""
    if not _is_configured(environ):
        return None
    try:
        module = importlib.import_module(exporter)
    except ImportError:
        log.warning("traces_not_exported", mend=f"{install_line('traces')}, or unset OTEL_EXPORTER_OTLP_ENDPOINT")
        return None
    export_class = cast("Callable[[str], SpanProvider]", module.Export)
    return Traces(partial(export_class, VERSION), is_joining=settings.trace_join, is_forwarding=settings.trace_forward)


def _is_configured(environ: Mapping[str, str]) -> bool:
    """True if an OTLP endpoint is set and no variable disables export."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return False
    return any(environ.get(name, "").strip() for name in _ENDPOINT_VARIABLES)
