"""`python -m examples.run`: a gateway, the example library behind it, and the lines that connect a client.

The library is registered through the admin API, as a user would do it. Data and keys stay in the data folder between
starts. The gateway reaches this machine only.
"""

import hashlib
import sys
from pathlib import Path

import click

from examples.library.upstream import Library, build_upstream
from examples.serving import serving
from gateway.app.server.running import Running
from gateway.cli.client.admin_api import AdminApi, path_of
from gateway.cli.client.local_gateway import host, local_settings
from gateway.cli.client.locations import DEFAULT_FOLDER, mcp_url
from gateway.cli.client.provision import ensure_key, ensure_source, ensure_tenant, find_source, policy_line
from gateway.cli.commands.serve import print_operator_key
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.documents import read_document
from gateway.cli.input.json_fields import JsonObject, to_object
from gateway.cli.output.client_lines import render_clients
from gateway.cli.output.progress import Progress
from gateway.cli.output.reports import join_parts, render_totals
from gateway.cli.output.tables import render_pairs
from gateway.domain.tenancy.client_setup import ClientTarget

_TENANT = "example"
_SOURCE = "library"
_UPSTREAM_PORT = 8091
_DOCUMENT = Path(__file__).parent / "library" / "openapi.yaml"
_KEY_FILE = "example-key"
_IMPORTED_FILE = "example-imported"


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 selects a free port. Default: GATEWAY_PORT or 8080.",
)
@click.option("--upstream-port", type=click.IntRange(0, 65535), default=_UPSTREAM_PORT, show_default=True)
@click.option("--data-dir", type=click.Path(path_type=Path), envvar="GATEWAY_DATA_DIR", default=DEFAULT_FOLDER)
def run(port: int | None, upstream_port: int, data_dir: Path) -> None:
    """Run the example until Ctrl-C."""
    with serving(build_upstream(Library()), port=upstream_port) as taken, Progress() as progress:
        settings = local_settings(port=port, folder=data_dir, reachable=(f"127.0.0.1:{taken}",))
        progress.stage("Starting the gateway with PostgreSQL and Redis of its own")
        host(settings, lambda running: _prepare(running, progress, base_url=f"http://127.0.0.1:{taken}"))


def _prepare(running: Running, progress: Progress, *, base_url: str) -> None:
    with AdminApi(running.admin_url, running.operator_key) as admin:
        ensure_tenant(admin, _TENANT)
        report = _ensure_library(admin, progress, folder=running.data_dir, base_url=base_url)
        key = ensure_key(admin, _TENANT, kept_in=running.data_dir / _KEY_FILE)
        policy = policy_line(admin, _TENANT, change=f"`gateway --tenant {_TENANT} policy update`")
    progress.finish()
    target = ClientTarget(name=_SOURCE, url=mcp_url(running.url, _TENANT), key=key)
    heading = f"The example library is at {base_url}, its tools at the MCP URL. Ctrl-C ends both."
    operator = render_pairs([("operator key", print_operator_key(running))])
    click.echo(join_parts(heading, render_totals(report), render_clients(target), policy, operator))


def _ensure_library(admin: AdminApi, progress: Progress, *, folder: Path, base_url: str) -> JsonObject:
    """Import the library's document unless it and its URL are unchanged since the last import; return the report."""
    path = path_of("tenants", _TENANT, "sources")
    document = read_document(str(_DOCUMENT))
    wanted = hashlib.sha256(f"{base_url}\n{document.text}".encode()).hexdigest()
    marker = folder / _IMPORTED_FILE
    if find_source(admin, path=path, name=_SOURCE) is not None and _read(marker) == wanted:
        return admin.get(path + path_of(_SOURCE, "report"))
    fields: JsonObject = {"name": _SOURCE, "base_url": base_url}
    answer = ensure_source(admin, progress, path=path, fields=fields, document=document)
    marker.write_text(wanted)
    return to_object(answer.get("report"))


def _read(path: Path) -> str:
    return path.read_text(encoding="ascii", errors="replace") if path.is_file() else ""


def main() -> None:
    """Run the example and exit with its code."""
    try:
        run(standalone_mode=False)
    except Failure as failure:
        failure.show()
        sys.exit(failure.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(ExitCode.USAGE)
    except click.Abort:
        sys.exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    main()
