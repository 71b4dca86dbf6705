"""`gateway tenant`: the isolated customers of a gateway."""

import click

from gateway.cli.client.admin_api import path_of
from gateway.cli.client.admin_context import AdminContext, with_admin
from gateway.cli.client.provision import policy_line
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, as_text, text_at, to_list
from gateway.cli.kinds.commands import KindCommands
from gateway.cli.kinds.places import naming_of
from gateway.cli.kinds.single_commands import SingletonCommands
from gateway.cli.object_names import object_argument
from gateway.cli.output.tables import render_table
from gateway.kinds.identity import TENANT
from gateway.kinds.singletons import CEILINGS, EGRESS

_ALL = "all"


def _remark_on(context: AdminContext, made: JsonObject) -> str:
    slug, url = text_at(made, "slug"), text_at(made, "status", "mcp_url")
    place = f"MCP URL: {context.admin.url if url.startswith('/') else ''}{url}"
    return f"{place}\n{policy_line(context.admin, slug, change=f'`gateway --tenant {slug} policy update`')}"


tenant = KindCommands(
    kind=TENANT, loss=" with everything that it owns except its audit trail", remark=_remark_on
).group()
egress = SingletonCommands(kind=EGRESS).group()
ceilings = SingletonCommands(kind=CEILINGS).group()


@tenant.command("deleted")
@click.option("--slug", help="Only tenants that had this slug.")
@with_admin
def list_deleted_tenants(context: AdminContext, slug: str | None) -> None:
    """List deleted tenants with their ids; `gateway --tenant ID audit list` reads the trail of one."""
    items = list(context.admin.pages("/deleted-tenants", query={"slug": slug} if slug else {}))
    rows = [(text_at(item, "slug"), text_at(item, "id"), text_at(item, "deleted_at")) for item in items]
    context.show(items, lambda: render_table(("slug", "id", "deleted"), rows))


@tenant.command("rename", hidden=True)
@object_argument(naming_of(TENANT), "slug")
@click.argument("name")
@with_admin
def rename_tenant(context: AdminContext, slug: str, name: str) -> None:
    """Change the display NAME of a tenant: `update SLUG --name NAME`.

    \b
    Example:
      gateway tenant rename acme "Acme Group"
    """
    renamed = context.admin.send("PATCH", path_of("tenants", slug), {"name": name})
    context.show(renamed, lambda: f"updated {slug}")


@tenant.command("egress")
@object_argument(naming_of(TENANT), "slug")
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    metavar="HOST:PORT",
    help="Add a private upstream, host:port or unix:/path; may be repeated.",
)
@click.option(
    "--withdraw", "withdrawn", multiple=True, metavar="HOST:PORT", help="Remove an entry, or `all`; may be repeated."
)
@with_admin
def change_egress(context: AdminContext, slug: str, allowed: tuple[str, ...], withdrawn: tuple[str, ...]) -> None:
    """Show, add or remove the private upstreams of a tenant.

    \b
    Example:
      gateway tenant egress acme --allow 10.0.0.7:8080
    """
    path = path_of("tenants", slug, "egress")
    found, tag = context.admin.get_with_tag(path)
    if allowed or withdrawn:
        kept = _remaining_entries([as_text(entry) for entry in to_list(found.get("allow"))], withdrawn)
        found = context.admin.send("PUT", path, {"allow": [*kept, *allowed]}, if_match=tag)
    context.show(found, lambda: _list_egress(slug, found))


def _remaining_entries(entries: list[str], withdrawn: tuple[str, ...]) -> list[str]:
    """Return the entries that remain.

    Raises:
        Failure: a withdrawn entry is not in the list.
    """
    if _ALL in withdrawn:
        return []
    wanted = {entry if entry.startswith("unix:") else entry.lower() for entry in map(str.strip, withdrawn)}
    if missing := sorted(wanted.difference(entries)):
        listed = ", ".join(entries) or "nothing"
        raise Failure(f"--withdraw {missing[0]}: the tenant's list has {listed}", ExitCode.USAGE)
    return [entry for entry in entries if entry not in wanted]


def _list_egress(slug: str, found: JsonObject) -> str:
    entries = [as_text(entry) for entry in to_list(found.get("allow"))]
    return "\n".join(entries) or f"{slug} may reach no private upstream beside those in GATEWAY_EGRESS_ALLOW"
