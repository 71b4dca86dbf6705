"""The commands that run a gateway in this process. Each imports the gateway only when it runs, for a fast `--help`."""

from pathlib import Path
from types import ModuleType
from typing import Unpack

import click

from gateway.app.workers.cores import usable_cores
from gateway.app.workers.limits import MAX_WORKERS
from gateway.cli.click_group import paused_collection
from gateway.cli.deferred_imports import defer_imports
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.import_options import (
    ImportArguments,
    base_url_option,
    credential_option,
    expose_option,
    login_option,
    output_schemas_option,
    prefix_option,
)
from gateway.cli.input.options import json_option
from gateway.cli.input.selections import selection_options
from gateway.cli.logged_command import LoggedCommand
from gateway.cli.stdio.command import serve_specs
from gateway.cli.stdio.options import on_streams


class WorkerCount(click.ParamType[int]):
    """A number of processes, or `auto` for the number of cores that the process may use."""

    name = "N|auto"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number.

        Raises:
            BadParameter: it is not a number from 1 to 64, or `auto`.
        """
        text = str(value)
        count = min(usable_cores(), MAX_WORKERS) if text == "auto" else int(text) if text.isdecimal() else 0
        if not 1 <= count <= MAX_WORKERS:
            self.fail(f"{text!r} is neither a number from 1 to {MAX_WORKERS} nor `auto`", param, ctx)
        return count


@click.command("serve", cls=LoggedCommand)
@click.option("--host", "address", help="Address to listen on; default: GATEWAY_HOST or 127.0.0.1.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 selects a free port. Default: GATEWAY_PORT or 8080.",
)
@click.option(
    "--data-dir", type=click.Path(path_type=Path), help="The data folder; default: GATEWAY_DATA_DIR or .gateway."
)
@click.option(
    "--workers",
    type=WorkerCount(),
    default="1",
    show_default=True,
    help="Processes that serve, or `auto` for one per core; SIGHUP replaces them one after another.",
)
@json_option
def serve(address: str | None, port: int | None, data_dir: Path | None, workers: int) -> None:
    """Run the gateway until SIGTERM or Ctrl-C; calls in flight have GATEWAY_DRAIN_S seconds to finish.

    Without GATEWAY_DATABASE_URL and GATEWAY_REDIS_URL, the gateway starts its own PostgreSQL and Redis in the data
    folder.
    With GATEWAY_LOG_FORMAT=json, each line on standard output and standard error is one JSON object.

    \b
    Example:
      gateway serve --port 8080
      gateway serve --workers auto
    """
    import_serving().serve_gateway(address, port, data_dir, workers)


@click.command("migrate", cls=LoggedCommand)
@json_option
def migrate() -> None:
    """Migrate the database to this version; several processes may do so at the same time.

    \b
    Example:
      GATEWAY_MIGRATION_DATABASE_URL="$OWNER_URL" gateway migrate
    """
    import_serving().migrate_database()


@click.command("try")
@click.argument("spec")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; default: a free port.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="The folder for the data; default: a temporary folder, deleted at the end.",
)
@click.option(
    "--stdio", "on_stdio", is_flag=True, help="Serve MCP on the standard streams instead of HTTP, like `gateway stdio`."
)
@base_url_option
@prefix_option
@expose_option
@selection_options
@output_schemas_option
@credential_option
@login_option
@json_option
def try_spec(spec: str, port: int, data_dir: Path | None, on_stdio: bool, **options: Unpack[ImportArguments]) -> None:
    """Serve SPEC (a path, a URL, or - for standard input) as tools until Ctrl-C.

    Starts a gateway with its own PostgreSQL and Redis, and imports the document. Prints the report, the cost of the
    tools, one ready line for each known client and one for a first call. If the document yields no tool, the command
    ends. With --stdio, serves from this process alone, and keeps no data.

    \b
    Example:
      gateway try petstore.yaml
      gateway try crm.yaml --credential api_key=env:CRM_KEY
    """
    if on_stdio and data_dir is not None:
        raise Failure("--data-dir: a server on standard streams stores no data", ExitCode.USAGE)
    if on_stdio:
        serve_specs((spec,), on_streams(options))
        return
    import_serving()
    from gateway.cli.commands.try_spec import try_document  # noqa: PLC0415  # an HTTP client, not needed by `--help`

    try_document(spec, port, data_dir, options)


def import_serving() -> ModuleType:
    """Import the modules that serve, without unused dependencies; return the module with the commands."""
    with paused_collection():
        defer_imports()
        from gateway.cli.commands import serve  # noqa: PLC0415  # 1,400 modules, not needed by `--help`
    return serve
