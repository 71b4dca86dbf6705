"""`gateway client`: clients of a tenant's authorization server."""

from collections.abc import Sequence

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.declared_items import delete_one
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.input.list_options import ListArguments, list_options
from gateway.cli.input.options import yes_option
from gateway.cli.output.tables import render_pairs, render_table

_NOUN = "clients"
_redirect_option = click.option(
    "--redirect-uri", "redirect_uris", metavar="URI", multiple=True, help="An exact redirect URI; may be repeated."
)


@click.group("client", cls=Commands)
def client() -> None:
    """List, show, register, change, rotate and delete the clients of a tenant's authorization server."""


@client.command("list")
@list_options(_NOUN)
@with_tenant
def list_clients(context: AdminContext, wanted: ListArguments) -> None:
    """List the clients that are registered, without their secrets."""
    items = list(context.admin.pages(context.tenant_path(_NOUN), limit=wanted.limit, query=wanted.query))
    names = ("id", "name", "kind", "confidential", "redirect_uris", "used_at")
    context.show(items, lambda: render_table(names, [[text_at(item, name) for name in names] for item in items]))


@client.command("show")
@click.argument("client_id", metavar="ID")
@with_tenant
def show_client(context: AdminContext, client_id: str) -> None:
    """Show a client, without its secret."""
    found = context.admin.get(context.tenant_path(_NOUN, client_id))
    context.show(found, lambda: _describe(found))


@client.command("create")
@click.argument("name")
@_redirect_option
@click.option("--confidential", is_flag=True, help="Give the client a secret, for one that runs on a server.")
@with_tenant
def create_client(context: AdminContext, name: str, redirect_uris: Sequence[str], confidential: bool) -> None:
    """Register a client and print its id; its secret, if it has one, is not shown again."""
    if not redirect_uris:
        raise click.UsageError("--redirect-uri is missing")
    wanted: JsonObject = {"name": name, "redirect_uris": list(redirect_uris), "confidential": confidential}
    made = context.admin.send("POST", context.tenant_path(_NOUN), wanted)
    context.show(made, lambda: _describe(made))


@client.command("update")
@click.argument("client_id", metavar="ID")
@click.option("--name", help="The name that people see when they decide.")
@_redirect_option
@with_tenant
def update_client(context: AdminContext, client_id: str, name: str | None, redirect_uris: Sequence[str]) -> None:
    """Change the name of a client, or replace all its redirect URIs."""
    wanted: JsonObject = {"name": name} if name is not None else {}
    if redirect_uris:
        wanted["redirect_uris"] = list(redirect_uris)
    changed = context.admin.send("PATCH", context.tenant_path(_NOUN, client_id), wanted)
    context.show(changed, lambda: _describe(changed))


@client.command("rotate")
@click.argument("client_id", metavar="ID")
@with_tenant
def rotate_client(context: AdminContext, client_id: str) -> None:
    """Give a confidential client a new secret and print it; the former one is refused from now on."""
    rotated = context.admin.send("POST", context.tenant_path(_NOUN, client_id, "rotate"))
    context.show(rotated, lambda: _describe(rotated))


@client.command("delete")
@click.argument("client_id", metavar="ID")
@yes_option
@with_tenant
def delete_client(context: AdminContext, client_id: str, yes: bool) -> None:
    """Delete a client with the consents to it; its tokens are refused."""
    delete_one(context, _NOUN, client_id, is_sure=yes)


def _describe(found: JsonObject) -> str:
    return render_pairs([(name.replace("_", " "), text_at(found, name)) for name in found])
