"""`gateway credential`: secrets that a tenant's handlers name; written, never shown again."""

import click

from gateway.cli.declarations import for_each, read_declarations, text_in
from gateway.cli.desk import Desk, at_tenant, confirm
from gateway.cli.exits import Exit
from gateway.cli.failures import Failure
from gateway.cli.fields import JsonObject, text_at
from gateway.cli.options import confirm_option, limit_option
from gateway.cli.tables import render_pairs, render_table

_NOUN = "credentials"
_SHOWN = ("name", "id", "place", "field", "origins", "created_at", "updated_at")


@click.group()
def credential() -> None:
    """List, show, declare and delete the credentials that handlers name."""


@credential.command("list")
@limit_option
@at_tenant
def list_credentials(desk: Desk, limit: int | None) -> None:
    """List a tenant's credentials, without their secrets."""
    items = list(desk.admin.pages(desk.tenant_path(_NOUN), limit=limit))
    names = ("name", "place", "field", "origins")
    desk.show(items, lambda: render_table(names, [[text_at(item, name) for name in names] for item in items]))


@credential.command("show")
@click.argument("name")
@at_tenant
def show_credential(desk: Desk, name: str) -> None:
    """Show a credential, but for its secret."""
    found = desk.admin.get(desk.tenant_path(_NOUN, name))
    desk.show(found, lambda: render_pairs([(one.removesuffix("_at"), text_at(found, one)) for one in _SHOWN]))


@credential.command("create")
@click.argument("file")
@at_tenant
def create_credential(desk: Desk, file: str) -> None:
    """Store every credential that FILE declares (JSON or YAML; - reads stdin, which leaves no file)."""
    done: list[JsonObject] = []
    path = desk.tenant_path(_NOUN)
    for_each(read_declarations(file), lambda body: desk.admin.send("POST", path, body), done.append)
    desk.show(done, lambda: "\n".join(f"created {text_at(one, 'name')}" for one in done))


@credential.command("update")
@click.argument("file")
@at_tenant
def update_credential(desk: Desk, file: str) -> None:
    """Give every credential that FILE declares its new secret, place and origins."""
    done: list[JsonObject] = []
    for_each(read_declarations(file), lambda body: _put(desk, body), done.append)
    desk.show(done, lambda: "\n".join(f"updated {text_at(one, 'name')}" for one in done))


@credential.command("delete")
@click.argument("name")
@confirm_option
@at_tenant
def delete_credential(desk: Desk, name: str, yes: bool) -> None:
    """Delete a credential that no handler names."""
    confirm(f"Delete credential {name}?", is_sure=yes)
    desk.admin.send("DELETE", desk.tenant_path(_NOUN, name))
    desk.show({"deleted": name}, lambda: f"deleted {name}")


def _put(desk: Desk, body: JsonObject) -> JsonObject:
    name = text_in(body, "name")
    if not name:
        raise Failure("/name: required", Exit.USAGE)
    path = desk.tenant_path(_NOUN, name)
    return desk.admin.send("PUT", path, {key: value for key, value in body.items() if key != "name"})
