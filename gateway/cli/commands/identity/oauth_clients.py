"""`gateway client`: clients of a tenant's authorization server."""

from collections.abc import Sequence

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.item_commands import BY_ID, add_delete, add_list, add_show, render_fields

_NOUN = "clients"
_redirect_option = click.option(
    "--redirect-uri", "redirect_uris", metavar="URI", multiple=True, help="An exact redirect URI; may be repeated."
)


@click.group("client", cls=Commands)
def client() -> None:
    """List, show, register, change, rotate and delete the clients of a tenant's authorization server."""


@client.command("create")
@click.argument("name")
@_redirect_option
@click.option("--confidential", is_flag=True, help="Give the client a secret, for one that runs on a server.")
@with_tenant
def create_client(context: AdminContext, name: str, redirect_uris: Sequence[str], confidential: bool) -> None:
    """Register a client and print its id; its secret, if it has one, is not shown again.

    \b
    Example:
      gateway client create desktop --redirect-uri http://127.0.0.1/callback
    """
    if not redirect_uris:
        raise click.UsageError("--redirect-uri is missing")
    wanted: JsonObject = {"name": name, "redirect_uris": list(redirect_uris), "confidential": confidential}
    made = context.admin.send("POST", context.tenant_path(_NOUN), wanted)
    context.show(made, lambda: render_fields(made))


@client.command("update")
@click.argument("client_id", metavar="ID")
@click.option("--name", help="The name that people see when they decide.")
@_redirect_option
@with_tenant
def update_client(context: AdminContext, client_id: str, name: str | None, redirect_uris: Sequence[str]) -> None:
    """Change the name of a client, or replace all its redirect URIs.

    \b
    Example:
      gateway client update cli_0123456789 --name "Desktop client"
    """
    wanted: JsonObject = {"name": name} if name is not None else {}
    if redirect_uris:
        wanted["redirect_uris"] = list(redirect_uris)
    changed = context.admin.send("PATCH", context.tenant_path(_NOUN, client_id), wanted)
    context.show(changed, lambda: render_fields(changed))


@client.command("rotate")
@click.argument("client_id", metavar="ID")
@with_tenant
def rotate_client(context: AdminContext, client_id: str) -> None:
    """Give a confidential client a new secret and print it; the former one is refused from now on."""
    rotated = context.admin.send("POST", context.tenant_path(_NOUN, client_id, "rotate"))
    context.show(rotated, lambda: render_fields(rotated))


add_list(
    client,
    _NOUN,
    "List the clients that are registered, without their secrets.",
    ("id", "name", "kind", "confidential", "redirect_uris", "used_at"),
)
add_show(client, _NOUN, "Show a client, without its secret.", naming=BY_ID)
add_delete(client, _NOUN, "Delete a client with the consents to it; its tokens are refused.", naming=BY_ID)
