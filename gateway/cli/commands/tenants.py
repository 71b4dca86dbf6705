"""`gateway tenant`: the isolated customers of a gateway."""

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_api import path_of
from gateway.cli.client.admin_context import Desk, at_desk, confirm
from gateway.cli.client.locations import mcp_url
from gateway.cli.commands.ceilings import ceilings
from gateway.cli.exit_codes import Exit
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, as_list, as_text, text_at
from gateway.cli.input.list_options import Wanted, list_options
from gateway.cli.input.options import confirm_option
from gateway.cli.output.tables import render_pairs, render_table

_ALL = "all"


@click.group(cls=Commands)
def tenant() -> None:
    """List, show, create, rename and delete tenants; set ceilings of their limits; permit private upstreams."""


tenant.add_command(ceilings)


@tenant.command("list")
@list_options("tenants")
@at_desk
def list_tenants(desk: Desk, wanted: Wanted) -> None:
    """List all tenants."""
    items = list(desk.admin.pages("/tenants", limit=wanted.limit, query=wanted.query))
    rows = [(text_at(item, "slug"), text_at(item, "name"), text_at(item, "created_at")) for item in items]
    desk.show(items, lambda: render_table(("slug", "name", "created"), rows))


@tenant.command("show")
@click.argument("slug")
@at_desk
def show_tenant(desk: Desk, slug: str) -> None:
    """Show one tenant."""
    found = desk.admin.get(path_of("tenants", slug))
    desk.show(found, lambda: _describe(desk, found))


@tenant.command("create")
@click.argument("slug")
@click.option("--name", help="A name for people; default: the slug.")
@at_desk
def create_tenant(desk: Desk, slug: str, name: str | None) -> None:
    """Create a tenant; SLUG stands in its URL."""
    created = desk.admin.send("POST", "/tenants", {"slug": slug} | ({"name": name} if name else {}))
    desk.show(created, lambda: _describe(desk, created))


@tenant.command("rename")
@click.argument("slug")
@click.argument("name")
@at_desk
def rename_tenant(desk: Desk, slug: str, name: str) -> None:
    """Give a tenant another NAME for people; its slug stays."""
    renamed = desk.admin.send("PATCH", path_of("tenants", slug), {"name": name})
    desk.show(renamed, lambda: _describe(desk, renamed))


@tenant.command("egress")
@click.argument("slug")
@click.option(
    "--allow", "allowed", multiple=True, metavar="HOST:PORT", help="Add a private upstream; may be given again."
)
@click.option(
    "--withdraw", "withdrawn", multiple=True, metavar="HOST:PORT", help="Take one out, or `all`; may be given again."
)
@at_desk
def change_egress(desk: Desk, slug: str, allowed: tuple[str, ...], withdrawn: tuple[str, ...]) -> None:
    """Show the private upstreams that a tenant may reach, or add and withdraw some."""
    path = path_of("tenants", slug, "egress")
    found, tag = desk.admin.get_with_tag(path)
    if allowed or withdrawn:
        kept = _without([as_text(entry) for entry in as_list(found.get("allow"))], withdrawn)
        found = desk.admin.send("PUT", path, {"allow": [*kept, *allowed]}, if_match=tag)
    desk.show(found, lambda: _list_egress(slug, found))


def _without(entries: list[str], withdrawn: tuple[str, ...]) -> list[str]:
    """The entries that stay.

    Raises:
        Failure: one is withdrawn that is not in the list.
    """
    if _ALL in withdrawn:
        return []
    wanted = {entry.strip().lower() for entry in withdrawn}
    if missing := sorted(wanted.difference(entries)):
        listed = ", ".join(entries) or "nothing"
        raise Failure(f"--withdraw {missing[0]}: the tenant's list has {listed}", Exit.USAGE)
    return [entry for entry in entries if entry not in wanted]


@tenant.command("delete")
@click.argument("slug")
@confirm_option
@at_desk
def delete_tenant(desk: Desk, slug: str, yes: bool) -> None:
    """Delete a tenant with everything that is its own."""
    confirm(f"Delete tenant {slug} with its keys, sources and credentials?", is_sure=yes)
    desk.admin.send("DELETE", path_of("tenants", slug))
    desk.show({"deleted": slug}, lambda: f"deleted {slug}")


def _list_egress(slug: str, found: JsonObject) -> str:
    entries = [as_text(entry) for entry in as_list(found.get("allow"))]
    return "\n".join(entries) or f"{slug} may reach no private upstream beside those in GATEWAY_EGRESS_ALLOW"


def _describe(desk: Desk, found: JsonObject) -> str:
    slug = text_at(found, "slug")
    names = ("name", "id", "revision", "created_at")
    return render_pairs(
        [
            ("slug", slug),
            *((name.removesuffix("_at"), text_at(found, name)) for name in names),
            ("mcp url", mcp_url(desk.admin.url, slug)),
        ]
    )
