"""Writes the reference pages of `docs/` from the code: `python -m tests.deploy.pages`."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import click

from gateway.cli.main import gateway
from gateway.settings import CLIENT_VARIABLES, FILE_SUFFIX, PREFIX, SECRETS, Settings
from gateway.telemetry.limits import MAX_SOURCES, MAX_TENANTS
from gateway.telemetry.metrics import Metrics
from tests.deploy.admin_page import admin_body, admin_text
from tests.deploy.clients_page import CLIENTS, clients_table
from tests.deploy.compose import ROOT
from tests.deploy.errors_page import errors_page
from tests.deploy.file_map import file_map
from tests.deploy.guards_page import guards_page, threats
from tests.deploy.kind_groups import kind_groups

DOCS = Path(__file__).parents[2] / "docs"

_WRITTEN = "Written by `python -m tests.deploy.pages` from the code; do not edit."
_WIDTH = 100


def pages() -> dict[str, str]:
    """Every page by its file name."""
    return {
        "settings.md": settings_page(),
        "metrics.md": metrics_page(),
        "cli.md": commands_page(),
        "clients.md": _page("Limits of clients", CLIENTS, clients_table()),
        "decisions/README.md": decisions_page(),
        "admin-api.md": _page("The admin API", admin_text(), admin_body()),
        "development/file-map.md": _page("File map", "Every module of the gateway, by package.", file_map()),
        "security/guards.md": guards_page(threats((DOCS / "security/guards.md").read_text())),
        "../gateway/cli/kinds/groups.py": kind_groups(),
        "../gateway/web/errors.html": errors_page((DOCS / "errors.md").read_text()),
    }


def first_command(page: str) -> str:
    """The first command that the page shows behind a prompt; `page` is relative to the repository."""
    found = re.search(r"^\$ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def settings_page() -> str:
    """Every variable that the gateway reads."""
    rows = [
        f"| `{PREFIX}{name.upper()}` | {_default(name)} | {_cell(field.description or '')} |"
        for name, field in Settings.model_fields.items()
    ]
    secret = ", ".join(f"`{PREFIX}{name.upper()}`" for name in SECRETS)
    return _page(
        "Settings",
        f"""Everything is a variable of the environment; a misspelt one stops the start, and the message names
the nearest. An empty one counts as not set. There are {len(rows)} of them.

Secrets may be in files: with `{FILE_SUFFIX}` behind its name, a variable holds the path of one. Space and line ends
around the secret do not count; in a list, each line is an entry. This holds for {secret}.

Durations are seconds. The command line as a client reads {_listed(sorted(CLIENT_VARIABLES))} and
`GATEWAY_OPERATOR_KEY`; the server ignores the first of these.""",
        "| variable | default | meaning |\n| --- | --- | --- |\n" + "\n".join(rows),
    )


def metrics_page() -> str:
    """Every number on `/metrics`."""
    rows = [
        f"| `{family.name}` | {family.kind} | {_listed(family.labels)} | {_cell(family.meaning)} |"
        for family in Metrics().families
    ]
    return _page(
        "Metrics",
        f"""`/metrics` answers in Prometheus' format. It wants `GATEWAY_METRICS_KEY` or the operator's key as Bearer.

Labels are bounded: the first {MAX_TENANTS} tenants that a replica meets have series of their own, each with up to
{MAX_SOURCES} sources; what comes later counts as `_other`. Counting costs a call less than a microsecond. Limits show
as the outcome `limited` of calls and as answers with status 429.

A scrape and alerts are in `deploy/prometheus`, a dashboard in `deploy/grafana`; what to do on an alert is in
[operations](operations.md).""",
        "| name | kind | labels | meaning |\n| --- | --- | --- | --- |\n" + "\n".join(rows),
    )


def commands_page() -> str:
    """The help of every command."""
    return _page(
        "The command line",
        "The output of `--help`, command by command. Options of `gateway` itself may also follow a command's name.",
        "\n".join(_commands(gateway, _context(gateway, "gateway"))).rstrip(),
    )


def decisions_page() -> str:
    """The records, by number."""
    records = [(path.name, path.read_text().partition("\n")[0]) for path in sorted((DOCS / "decisions").glob("0*.md"))]
    titles = [(name, *title.removeprefix("# ").split(". ", 1)) for name, title in records]
    rows = [f"| [{number}]({name}) | {title} |" for name, number, title in titles]
    return _page(
        "Decisions",
        "What cost something to decide and would cost something to take back: why, and what was not chosen.",
        "| no. | decided |\n| --- | --- |\n" + "\n".join(rows),
    )


def _commands(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## `{context.command_path}`\n\n```\n{_help(command, context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from _commands(below, _context(below, name, context))


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    """The place of a command, as wide on every machine."""
    return click.Context(command, parent, name, terminal_width=_WIDTH, max_content_width=_WIDTH)


def _help(command: click.Command, context: click.Context) -> str:
    lines = command.get_help(context).replace("\b\n", "").splitlines()
    return "\n".join(line.rstrip() for line in lines)


def _default(name: str) -> str:
    field = Settings.model_fields[name]
    value = field.get_default()
    if value is None or value == ():
        return "–"
    choices = [choice for choice in get_args(field.annotation) if isinstance(choice, str)]
    shown = f"`{value:g}`" if isinstance(value, float) else f"`{value}`"
    others = [f"`{choice}`" for choice in choices if choice != value]
    return f"{shown} ({', '.join(others)})" if others else shown


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "–"


def _page(title: str, text: str, body: str) -> str:
    return f"# {title}\n\n{_WRITTEN}\n\n{text}\n\n{body}\n"


if __name__ == "__main__":
    for name, page in pages().items():
        (DOCS / name).write_text(page)
