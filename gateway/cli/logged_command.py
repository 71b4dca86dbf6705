"""Commands whose output goes to a log collector: with `GATEWAY_LOG_FORMAT=json`, each line is one JSON object."""

import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import click

from gateway.cli.output.printing import echo


class LoggedCommand(click.Command):
    """A command that runs a part of the gateway; with JSON logs, its failures are log lines."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the options."""
        with _failures():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _failures():
            return super().invoke(ctx)


def logs_json() -> bool:
    """True if JSON logs are configured explicitly.

    Reads the environment directly, because another setting can be invalid.
    """
    return os.environ.get("GATEWAY_LOG_FORMAT") == "json"


def show_line(value: Mapping[str, object]) -> None:
    """Print an object as one line of ASCII JSON, which log collectors do not split."""
    echo(json.dumps(value))


def _failures() -> AbstractContextManager[None]:
    if not logs_json():
        return nullcontext()
    from gateway.cli.failure_lines import json_failures  # noqa: PLC0415  # structlog, not needed by `--help`

    return json_failures()
