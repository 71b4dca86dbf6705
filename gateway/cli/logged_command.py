"""Commands whose streams a log collector reads: with `GATEWAY_LOG_FORMAT=json` they hold one JSON object a line."""

import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import click


class LoggedCommand(click.Command):
    """A command that runs a part of the gateway; its failures are log lines where logs are JSON."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the options."""
        with _failures():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _failures():
            return super().invoke(ctx)


def logs_json() -> bool:
    """JSON was asked for by name. The environment is read here, as a setting beside it may be broken."""
    return os.environ.get("GATEWAY_LOG_FORMAT") == "json"


def show_line(value: Mapping[str, object]) -> None:
    """Print an object on one line of ASCII, which no collector splits."""
    click.echo(json.dumps(value))


def _failures() -> AbstractContextManager[None]:
    if not logs_json():
        return nullcontext()
    from gateway.cli.failure_lines import failures_as_lines  # noqa: PLC0415  # structlog, which `--help` does without

    return failures_as_lines()
