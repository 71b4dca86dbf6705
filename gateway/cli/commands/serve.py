"""`gateway serve` and `gateway migrate`: run the gateway, and prepare its database."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio

from gateway.app.server.running import Running
from gateway.app.workers.supervisor import serve_workers
from gateway.cli.client.local_gateway import host, read_settings
from gateway.cli.client.locations import OPERATOR_KEY_FILE
from gateway.cli.failures import failure_of
from gateway.cli.input.options import wants_json
from gateway.cli.logged_command import logs_json, show_line
from gateway.cli.output.printing import Shown, show
from gateway.cli.output.tables import render_pairs
from gateway.embedded.servers import EmbeddedServers
from gateway.errors import GatewayError
from gateway.settings import Settings


def serve_gateway(address: str | None, port: int | None, data_dir: Path | None, workers: int) -> None:
    """Run the gateway until SIGTERM or Ctrl-C, with so many processes that serve.

    Raises:
        Failure: a setting is invalid, or the gateway did not start.
    """
    given: dict[str, object | None] = {"host": address, "port": port, "data_dir": data_dir}
    options = {name: value for name, value in given.items() if value is not None}
    settings = read_settings(**options)
    as_json = wants_json()
    serving = None if workers == 1 else partial(serve_workers, count=workers, options=options)
    host(settings, lambda running: _announce(running, as_json=as_json), serving=serving)


def migrate_database() -> None:
    """Migrate the database to this version.

    Raises:
        Failure: a setting is invalid, or the database cannot be migrated.
    """
    settings = read_settings()
    try:
        applied = list(anyio.run(_migrate, settings))
    except GatewayError as error:
        raise failure_of(error) from None
    text = f"applied {', '.join(applied)}" if applied else "nothing to do: the database is at this version"
    _print({"applied": applied}, lambda: text, as_json=wants_json())


async def _migrate(settings: Settings) -> list[str]:
    from gateway.store.database.migrations import migrate  # noqa: PLC0415  # Alembic, not needed by `serve`

    url = settings.migration_database_url or settings.database_url
    if url is not None:
        return list(await migrate(url.get_secret_value()))
    async with EmbeddedServers(settings.data_dir) as urls:
        return list(await migrate(urls.migration_database_url))


def _announce(running: Running, *, as_json: bool) -> None:
    facts: dict[str, object] = {
        "url": running.url,
        "admin_url": running.admin_url,
        "embedded": running.embedded,
        "data_dir": str(running.data_dir),
    }
    facts |= {"operator_key": running.operator_key} if running.operator_key_is_new else {}
    pairs = [
        ("gateway", running.url),
        ("admin API", _admin_url_line(running)),
        ("servers", f"embedded, data in {running.data_dir}" if running.embedded else "configured"),
        ("operator key", print_operator_key(running)),
    ]
    _print(facts, lambda: render_pairs(pairs), as_json=as_json)


def _print(facts: dict[str, object], text: Callable[[], Shown], *, as_json: bool) -> None:
    """Print the facts as one line if logs are JSON, else in the format that `--json` selects."""
    if logs_json():
        show_line(facts)
    else:
        show(facts, text, as_json=as_json)


def _admin_url_line(running: Running) -> str:
    """Return the URL of the admin API if it differs from the URL of MCP; admin commands need it as `GATEWAY_URL`."""
    return "" if running.admin_url == running.url else f"{running.admin_url} (GATEWAY_URL for admin commands)"


def print_operator_key(running: Running) -> str:
    """Return the operator key if it was just generated, else the path of its file; empty if the key is configured."""
    kept = running.data_dir / OPERATOR_KEY_FILE
    if running.operator_key_is_new:
        return f"{running.operator_key} (shown once, stored in {kept})"
    return f"stored in {kept}" if kept.is_file() and not os.environ.get("GATEWAY_OPERATOR_KEY") else ""
