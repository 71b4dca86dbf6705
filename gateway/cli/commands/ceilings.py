"""`gateway tenant ceilings`: the maximum of each limit of a tenant, set with the operator's key."""

from typing import TypedDict, Unpack

import click

from gateway.cli.client.admin_api import path_of
from gateway.cli.client.admin_context import AdminContext, with_admin
from gateway.cli.commands.policies import LIMITS, parse_limits
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, text_at, to_list, to_object
from gateway.cli.input.options import DURATION
from gateway.cli.output.tables import render_pairs, render_table
from gateway.domain.tenancy.keys import Scope

_DEFAULT = "default"


class _BoundOptions(TypedDict):
    keys: int | None
    key_lifetime: int | None
    grant: tuple[str, ...]
    no_issuers: bool
    delegate_all: bool


@click.command("ceilings")
@click.argument("slug")
@click.option(
    "--limit",
    "given",
    multiple=True,
    metavar="NAME=NUMBER",
    help=f"A ceiling to set, or NAME=default for the installation's. One of {', '.join(LIMITS)}.",
)
@click.option("--keys", type=click.IntRange(1, 1_000_000), help="The number of keys that the tenant may have.")
@click.option("--key-lifetime", type=DURATION, help="The longest time until the end of a key, such as 90d.")
@click.option(
    "--grant",
    multiple=True,
    type=click.Choice([one.value for one in Scope]),
    help="A scope that the tenant's admins may grant; may be repeated. Without any, each of their own.",
)
@click.option("--no-issuers", is_flag=True, help="The tenant's admins may not accept issuers.")
@click.option("--delegate-all", is_flag=True, help="Remove the bounds of what the tenant's admins may do.")
@with_admin
def ceilings(context: AdminContext, slug: str, given: tuple[str, ...], **bounds: Unpack[_BoundOptions]) -> None:
    """Show the ceilings of a tenant's limits and of its admins, or set those that are given; the others are kept.

    \b
    Example:
      gateway tenant ceilings acme --keys 20 --key-lifetime 90d --grant mcp --grant audit --no-issuers
    """
    path = path_of("tenants", slug, "ceilings")
    wanted = _parse_ceilings(given)
    found, tag = context.admin.get_with_tag(path)
    wanted |= _updated_bounds(bounds, to_object(found.get("admin_bounds")))
    if wanted:
        found = context.admin.send("PUT", path, wanted, if_match=tag)
    context.show(found, lambda: _describe(found))


def _parse_ceilings(given: tuple[str, ...]) -> JsonObject:
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


def _updated_bounds(given: _BoundOptions, stored: JsonObject) -> JsonObject:
    """Return the stored bounds, updated by the options; empty if no option is given."""
    changed: JsonObject = {
        **({} if given["keys"] is None else {"keys": given["keys"]}),
        **({} if given["key_lifetime"] is None else {"key_lifetime_s": given["key_lifetime"]}),
        **({"scopes": list(given["grant"])} if given["grant"] else {}),
        **({"issuers": False} if given["no_issuers"] else {}),
    }
    if given["delegate_all"]:
        if changed:
            raise Failure("--delegate-all excludes the bounds", ExitCode.USAGE)
        return {"admin_bounds": None}
    return {"admin_bounds": {**stored, **changed}} if changed else {}


def _describe(found: JsonObject) -> str:
    defaulted = to_list(found.get("defaulted"))
    rows = [(name, text_at(found, name), _DEFAULT if name in defaulted else "operator") for name in LIMITS]
    bounds = to_object(found.get("admin_bounds"))
    admins = [(name.replace("_", " "), text_at(bounds, name) or "no bound") for name in bounds]
    table = render_table(("limit", "ceiling", "set by"), rows)
    return f"{table}\n\nbounds of the tenant's admins:\n{render_pairs(admins)}"
