"""`gateway tenant ceilings`: the highest value of each limit of a tenant, set with the operator's key."""

import click

from gateway.cli.client.admin_api import path_of
from gateway.cli.client.admin_context import AdminContext, with_admin
from gateway.cli.commands.policies import LIMITS, parse_limits
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, as_list, text_at
from gateway.cli.output.tables import render_table

_DEFAULT = "default"


@click.command("ceilings")
@click.argument("slug")
@click.option(
    "--limit",
    "given",
    multiple=True,
    metavar="NAME=NUMBER",
    help=f"A ceiling to set, or NAME=default for the installation's. One of {', '.join(LIMITS)}.",
)
@with_admin
def ceilings(context: AdminContext, slug: str, given: tuple[str, ...]) -> None:
    """Show the ceilings of a tenant's limits, or set those that are given; the others are kept."""
    path = path_of("tenants", slug, "ceilings")
    wanted = _read(given)
    found, tag = context.admin.get_with_tag(path)
    if wanted:
        found = context.admin.send("PUT", path, wanted, if_match=tag)
    context.show(found, lambda: _describe(found))


def _read(given: tuple[str, ...]) -> JsonObject:
    """Parse ceilings written as NAME=NUMBER or NAME=default.

    Raises:
        Failure: a name is not a limit, or a value is neither a number nor `default`.
    """
    restored = [text.removesuffix(f"={_DEFAULT}") for text in given if text.endswith(f"={_DEFAULT}")]
    for name in restored:
        if name not in LIMITS:
            raise Failure(f"--limit {name}: the limits are {', '.join(LIMITS)}", ExitCode.USAGE)
    numbers = tuple(text for text in given if not text.endswith(f"={_DEFAULT}"))
    return {**parse_limits(numbers), **dict.fromkeys(restored)}


def _describe(found: JsonObject) -> str:
    defaulted = as_list(found.get("defaulted"))
    rows = [(name, text_at(found, name), _DEFAULT if name in defaulted else "operator") for name in LIMITS]
    return render_table(("limit", "ceiling", "set by"), rows)
