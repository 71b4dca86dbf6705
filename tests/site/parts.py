"""The generated parts of pages by name, each made from the code."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import get_args

import click

from gateway.cli.main import gateway
from gateway.settings import FILE_SUFFIX, PREFIX, SECRETS, Settings
from gateway.telemetry.limits import MAX_SOURCES, MAX_TENANTS
from gateway.telemetry.metrics import Metrics
from tests import promises
from tests.deploy.compose import ROOT
from tests.site.admin_part import admin_part
from tests.site.clients_part import clients_part
from tests.site.file_map import file_map
from tests.site.guards_part import guards_part
from tests.site.kinds_part import kinds_part

Render = Callable[[], str]
_WIDTH = 100


def settings_part() -> str:
    """Every variable that the gateway reads."""
    rows = [
        f"| `{PREFIX}{name.upper()}` | {_default(name)} | {_cell(field.description or '')} |"
        for name, field in Settings.model_fields.items()
    ]
    secret = ", ".join(f"`{PREFIX}{name.upper()}`" for name in SECRETS)
    counted = f"There are {len(rows)} variables. These have a form with `{FILE_SUFFIX}`: {secret}."
    return "\n".join([counted, "", "| variable | default | meaning |", "| --- | --- | --- |", *rows])


def metrics_part() -> str:
    """Every number on `/metrics`."""
    rows = [
        f"| `{family.name}` | {family.kind} | {_listed(family.labels)} | {_cell(family.meaning)} |"
        for family in Metrics().families
    ]
    bound = (
        f"The first {MAX_TENANTS} tenants that a replica meets have series of their own, each with up to {MAX_SOURCES} "
        "sources; later ones count as `_other`."
    )
    return f"{bound}\n\n| name | kind | labels | meaning |\n| --- | --- | --- | --- |\n" + "\n".join(rows)


def commands_part() -> str:
    """The help of every command."""
    return "\n".join(_commands(gateway, _context(gateway, "gateway"))).rstrip()


def decisions_part() -> str:
    """The records by number, for reading and for the navigation."""
    records = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    titles = [(path, path.read_text().partition("\n")[0].removeprefix("# ").split(". ", 1)) for path in records]
    rows = [f"| [{number}]({path.name}) | {title} |" for path, (number, title) in titles]
    tree = "\n".join(path.stem for path in records)
    return (
        "| no. | decided |\n| --- | --- |\n"
        + "\n".join(rows)
        + f"\n\n```{{toctree}}\n:hidden:\n:titlesonly:\n\n{tree}\n```"
    )


PARTS: Mapping[str, Render] = {
    "admin-api": admin_part,
    "clients": clients_part,
    "commands": commands_part,
    "decisions": decisions_part,
    "file-map": file_map,
    "guards": guards_part,
    "kinds": kinds_part,
    "metrics": metrics_part,
    "promises": promises.render,
    "settings": settings_part,
}


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
