"""`gateway key`: the credentials of a tenant's clients."""

from datetime import UTC, datetime

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import Desk, at_tenant, confirm
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.input.list_options import Wanted, list_options
from gateway.cli.input.options import confirm_option
from gateway.cli.output.tables import render_pairs, render_table
from gateway.domain.tenancy.keys import Scope

_NOUN = "keys"


@click.group(cls=Commands)
def key() -> None:
    """List, create, show, rotate, revoke and delete a tenant's keys."""


@key.command("list")
@list_options(_NOUN)
@at_tenant
def list_keys(desk: Desk, wanted: Wanted) -> None:
    """List a tenant's keys; their secrets are never shown again."""
    items = list(desk.admin.pages(desk.tenant_path(_NOUN), limit=wanted.limit, query=wanted.query))
    titles = ("id", "name", "scopes", "expires", "revoked")
    names = ("id", "name", "scopes", "expires_at", "revoked_at")
    rows = [[text_at(item, name) for name in names] for item in items]
    desk.show(items, lambda: render_table(titles, rows))


@key.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([scope.value for scope in Scope]),
    multiple=True,
    default=(Scope.MCP.value,),
    show_default=True,
    help="What it may be used for; may be given again. A key grants scopes that it has itself.",
)
@click.option("--subject", help="Who it stands for; default: the key itself.")
@click.option("--profile", help="The only profile it may be used at.")
@click.option("--expires", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="When it ends, in UTC.")
@at_tenant
def create_key(
    desk: Desk, name: str, scopes: tuple[str, ...], subject: str | None, profile: str | None, expires: datetime | None
) -> None:
    """Create a key and print it; this is the only time."""
    wanted: JsonObject = {"name": name, "scopes": list(scopes)}
    ends = expires.replace(tzinfo=UTC).isoformat() if expires else None
    optional = {"subject": subject, "profile": profile, "expires_at": ends}
    wanted |= {field: value for field, value in optional.items() if value is not None}
    created = desk.admin.send("POST", desk.tenant_path(_NOUN), wanted)
    desk.show(created, lambda: _describe(created))


@key.command("show")
@click.argument("key_id", metavar="ID")
@at_tenant
def show_key(desk: Desk, key_id: str) -> None:
    """Show a key, but for its secret."""
    found = desk.admin.get(desk.tenant_path(_NOUN, key_id))
    desk.show(found, lambda: _describe(found))


@key.command("rotate")
@click.argument("key_id", metavar="ID")
@at_tenant
def rotate_key(desk: Desk, key_id: str) -> None:
    """Give a key a new secret and print it; the old one ends, the subject stays."""
    rotated = desk.admin.send("POST", desk.tenant_path(_NOUN, key_id, "rotate"))
    desk.show(rotated, lambda: _describe(rotated))


@key.command("revoke")
@click.argument("key_id", metavar="ID")
@at_tenant
def revoke_key(desk: Desk, key_id: str) -> None:
    """End a key everywhere; it stays in the list."""
    revoked = desk.admin.send("POST", desk.tenant_path(_NOUN, key_id, "revoke"))
    desk.show(revoked, lambda: f"revoked {key_id}")


@key.command("delete")
@click.argument("key_id", metavar="ID")
@confirm_option
@at_tenant
def delete_key(desk: Desk, key_id: str, yes: bool) -> None:
    """End a key and forget it."""
    confirm(f"Delete key {key_id}?", is_sure=yes)
    desk.admin.send("DELETE", desk.tenant_path(_NOUN, key_id))
    desk.show({"deleted": key_id}, lambda: f"deleted {key_id}")


def _describe(found: JsonObject) -> str:
    names = ("id", "name", "scopes", "subject", "profile", "created_at", "expires_at", "revoked_at")
    pairs = [(name.removesuffix("_at"), text_at(found, name)) for name in names]
    return render_pairs([*pairs, ("key", text_at(found, "key"))])
