"""`gateway key`: API keys of a tenant's clients. Rotation, revocation and the search for leaked keys are special."""

from typing import TextIO, Unpack

import click

from gateway.cli.client.admin_api import path_of
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.commands.identity.key_rotation import BulkOptions, rotate_all
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, text_at, to_objects
from gateway.cli.input.options import DURATION, yes_option
from gateway.cli.item_commands import add_action
from gateway.cli.kinds.commands import KindCommands
from gateway.cli.kinds.places import naming_of
from gateway.cli.object_names import ObjectArgument
from gateway.cli.output.tables import render_table
from gateway.kinds.identity import KEY

_NAMING = naming_of(KEY)
_COMMANDS = KindCommands(
    kind=KEY,
    about="List, show, create, change, rotate, revoke and delete a tenant's keys.",
    verbs=("list", "show", "create", "set", "update", "delete"),
)
key = _COMMANDS.group()


@key.command("rotate")
@click.argument("name", cls=ObjectArgument, naming=_NAMING, metavar="[KEY]", required=False)
@click.option(
    "--overlap",
    type=DURATION,
    default="0s",
    help="Time for which the old secret remains valid, such as 24h or 7d; default: none.",
)
@click.option("--all", "is_all", is_flag=True, help="Rotate all active keys of the tenant instead of one.")
@click.option("--older-than", type=DURATION, help="With --all: only keys whose secret is as old, such as 90d.")
@click.option(
    "--secrets", metavar="FILE", help="With --all: a new file, private to you, for the new keys; - prints them."
)
@yes_option
@with_tenant
def rotate_key(context: AdminContext, name: str | None, overlap: int, **bulk: Unpack[BulkOptions]) -> None:
    """Rotate a key and print the new text once; the old secret ends now or after the overlap.

    KEY is an id, or a name that only one key has. With --all, the command asks first, goes on after a refusal, and
    its exit code is 9 if only some keys were rotated.

    \b
    Example:
      gateway --tenant acme key rotate agent --overlap 24h
      gateway --tenant acme key end-old-secret agent      # once every client has the new one
      gateway --tenant acme key rotate --all --older-than 90d --overlap 7d --secrets new-keys.json --yes
    """
    if bulk["is_all"] == (name is not None) or (not bulk["is_all"] and (bulk["older_than"] or bulk["secrets"])):
        raise Failure("give one KEY, or --all with its options", ExitCode.USAGE)
    body: JsonObject | None = {"overlap_s": overlap} if overlap else None
    if name is None:
        rotate_all(context, body, bulk)
        return
    rotated = context.admin.send("POST", context.tenant_path(KEY.plural, _NAMING.find(context, name), "rotate"), body)
    context.show(rotated, lambda: _COMMANDS.written_line(context, "rotated", rotated))


add_action(key, "end-old-secret", "End the old secret of a key now.", naming=_NAMING)
add_action(
    key,
    "revoke",
    "Revoke a key on all replicas; it remains in the list. On a terminal, the command asks first.",
    naming=_NAMING,
    result="revoked",
)


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
    places = ("id", "match", "tenant", "key.name", "key.status.state")
    rows = [[text_at(one, *place.split(".")) for place in places] for one in found]
    shown = render_table(("id", "secret", "tenant", "name", "state"), rows) if rows else "no key was found"
    context.show(checked, lambda: shown)
