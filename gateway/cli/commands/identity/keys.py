"""`gateway key`: API keys of a tenant's clients."""

from datetime import UTC, datetime, timedelta
from typing import TextIO

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_api import path_of
from gateway.cli.client.admin_context import AdminContext, confirm_at_terminal, with_tenant
from gateway.cli.client.key_names import find_key_id
from gateway.cli.input.json_fields import JsonObject, text_at, to_objects
from gateway.cli.input.list_options import list_options
from gateway.cli.input.options import DURATION, yes_option
from gateway.cli.item_commands import Naming, add_delete, add_list, add_show, render_fields
from gateway.cli.output.tables import render_table
from gateway.domain.tenancy.keys import Scope

_NOUN = "keys"
_BY_KEY = Naming(metavar="KEY", find=find_key_id)
_FIELDS = (
    "id",
    "name",
    "state",
    "scopes",
    "subject",
    "profile",
    "created_at",
    "expires_at",
    "revoked_at",
    "made_by",
    "old_secret_until",
    "last_used_at",
    "key",
)


class _ExpiryType(click.DateTime):
    """A date, a time in UTC, or a duration from now."""

    def __init__(self) -> None:
        super().__init__(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the time; any other format is a usage error."""
        if isinstance(value, str) and value[-1:] in {"s", "m", "h", "d"}:
            return datetime.now(UTC) + timedelta(seconds=DURATION.convert(value, param, ctx))
        found: datetime = super().convert(value, param, ctx)
        return found


@click.group(cls=Commands)
def key() -> None:
    """List, create, show, rotate, revoke and delete a tenant's keys."""


@key.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([scope.value for scope in Scope]),
    multiple=True,
    default=(Scope.MCP.value,),
    show_default=True,
    help="A scope of the key; may be repeated. A key can only grant scopes that it has.",
)
@click.option("--subject", help="The principal of the key; default: the key itself.")
@click.option("--profile", help="The only profile where the key is valid.")
@click.option("--expires", type=_ExpiryType(), help="The expiry: a date, a time in UTC, or a duration such as 30d.")
@with_tenant
def create_key(
    context: AdminContext,
    name: str,
    scopes: tuple[str, ...],
    subject: str | None,
    profile: str | None,
    expires: datetime | None,
) -> None:
    """Create a key and print it once.

    \b
    Example:
      gateway key create agent --scope mcp --expires 90d
    """
    wanted: JsonObject = {"name": name, "scopes": list(scopes)}
    ends = expires.replace(tzinfo=UTC).isoformat() if expires else None
    optional = {"subject": subject, "profile": profile, "expires_at": ends}
    wanted |= {field: value for field, value in optional.items() if value is not None}
    created = context.admin.send("POST", context.tenant_path(_NOUN), wanted)
    context.show(created, lambda: render_fields(created, *_FIELDS))


@key.command("rotate")
@click.argument("name", metavar="KEY")
@click.option(
    "--overlap",
    type=DURATION,
    default="0s",
    help="Time for which the old secret remains valid, such as 24h or 7d; default: none.",
)
@with_tenant
def rotate_key(context: AdminContext, name: str, overlap: int) -> None:
    """Rotate a key and print the new text once; the old secret ends now or after the overlap.

    KEY is an id, or a name that only one key has.

    \b
    Example:
      gateway --tenant acme key rotate agent --overlap 24h
      gateway --tenant acme key end-old-secret agent      # once every client has the new one
    """
    body: JsonObject | None = {"overlap_s": overlap} if overlap else None
    rotated = context.admin.send("POST", context.tenant_path(_NOUN, find_key_id(context, name), "rotate"), body)
    context.show(rotated, lambda: render_fields(rotated, *_FIELDS))


@key.command("end-old-secret")
@click.argument("name", metavar="KEY")
@with_tenant
def end_old_secret(context: AdminContext, name: str) -> None:
    """End the old secret of a key that was rotated with an overlap."""
    ended = context.admin.send("POST", context.tenant_path(_NOUN, find_key_id(context, name), "end-old-secret"))
    context.show(ended, lambda: render_fields(ended, *_FIELDS))


@key.command("revoke")
@click.argument("name", metavar="KEY")
@yes_option
@with_tenant
def revoke_key(context: AdminContext, name: str, yes: bool) -> None:
    """Revoke a key on all replicas; it remains in the list. On a terminal, the command asks first."""
    place = context.tenant_path(_NOUN, find_key_id(context, name), "revoke")
    confirm_at_terminal(f"Revoke key {name}?", is_sure=yes)
    revoked = context.admin.send("POST", place)
    context.show(revoked, lambda: f"revoked {name}")


@key.command("check")
@click.argument("file", type=click.File(), default="-")
@click.option("--revoke", is_flag=True, help="Revoke the keys whose secret the text contains.")
@with_tenant
def check_keys(context: AdminContext, file: TextIO, revoke: bool) -> None:
    """Find keys of this installation in FILE, or in the standard input, and name their tenants; for the operator.

    \b
    Example:
      pbpaste | gateway key check
      gateway key check leaked.log --revoke
    """
    checked = context.admin.send("POST", path_of("keys", "check"), {"text": file.read(), "revoke": revoke})
    found = to_objects(checked.get("found"))
    rows = [
        [text_at(one, *place.split(".")) for place in ("id", "match", "tenant", "key.name", "key.state")]
        for one in found
    ]
    shown = render_table(("id", "secret", "tenant", "name", "state"), rows) if rows else "no key was found"
    context.show(checked, lambda: shown)


add_list(
    key,
    _NOUN,
    "List a tenant's keys, without their secrets.",
    ("id", "name", "scopes", "state", "made_by", "expires_at", "old_secret_until", "last_used_at"),
    list_options(_NOUN),
)
add_show(key, _NOUN, "Show a key, without its secret.", fields=_FIELDS, naming=_BY_KEY)
add_delete(key, _NOUN, "Revoke a key and delete it.", naming=_BY_KEY)
