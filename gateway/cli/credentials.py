"""`gateway credential`: secrets that a tenant's handlers name; written, never shown again."""

import click

from gateway.cli.declared import create_all, delete_one, replace_all
from gateway.cli.desk import Desk, at_tenant
from gateway.cli.fields import text_at
from gateway.cli.groups import Commands
from gateway.cli.options import confirm_option, limit_option
from gateway.cli.tables import render_pairs, render_table

_NOUN = "credentials"
_SHOWN = ("name", "id", "place", "field", "origins", "created_at", "updated_at")


@click.group(cls=Commands)
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
    create_all(desk, _NOUN, file)


@credential.command("update")
@click.argument("file")
@at_tenant
def update_credential(desk: Desk, file: str) -> None:
    """Give every credential that FILE declares its new secret, place and origins."""
    replace_all(desk, _NOUN, file)


@credential.command("delete")
@click.argument("name")
@confirm_option
@at_tenant
def delete_credential(desk: Desk, name: str, yes: bool) -> None:
    """Delete a credential that no handler names."""
    delete_one(desk, _NOUN, name, is_sure=yes)
