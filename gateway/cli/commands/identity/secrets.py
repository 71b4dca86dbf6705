"""`gateway secrets`: the secret keys of the installation, and the re-encryption under the current one."""

import time
from pathlib import Path

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_api import AdminApi, path_of
from gateway.cli.client.admin_context import AdminContext, confirm, with_admin
from gateway.cli.client.locations import DEFAULT_FOLDER
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, text_at, to_object, to_objects
from gateway.cli.input.options import chosen, data_dir_option, json_option, wants_json, yes_option
from gateway.cli.limits import ROTATION_POLL_S
from gateway.cli.output.printing import Shown, echo, join, show
from gateway.cli.output.tables import render_table
from gateway.cli.output.times import show_time

_PATH = path_of("secrets")


@click.group(cls=Commands)
def secrets() -> None:
    """Show the secret keys and what needs them, re-encrypt everything with the newest, give up a lost key."""


@secrets.command("status")
@with_admin
def show_status(context: AdminContext) -> None:
    """Show the secret keys by name, what needs each of them, and which can be removed."""
    found = context.admin.get(_PATH)
    context.show(found, lambda: _render(found))


@secrets.command("rotate")
@click.option("--dry-run", is_flag=True, help="Show what would be re-encrypted, without a change.")
@click.option("--no-wait", is_flag=True, help="Return at once; the re-encryption continues in the background.")
@with_admin
def rotate(context: AdminContext, dry_run: bool, no_wait: bool) -> None:
    """Re-encrypt everything that an older secret key has sealed, while the gateway serves.

    \b
    Before: put the new key last in GATEWAY_SECRET_KEYS of every replica and restart them, then first and restart again.
    After: `gateway doctor` reports when the old key can be removed.

    \b
    Example:
      gateway secrets rotate --dry-run
    """
    found = context.admin.send("POST", path_of("secrets", "rotate"), {"dry_run": dry_run})
    if not dry_run and not no_wait:
        found = _follow(context.admin, found)
    context.show(found, lambda: _render(found))


@secrets.command("forget")
@click.argument("name")
@yes_option
@data_dir_option
@json_option
def forget_key(name: str, yes: bool) -> None:
    """Give up the secret key NAME, which is lost: what needs it cannot be opened again, and is not deleted.

    A gateway does not start while stored values need a secret key that it lacks. So this works on the database of this
    environment (GATEWAY_DATABASE_URL, or --data-dir), not on a running gateway.

    \b
    Example:
      gateway secrets forget old
    """
    confirm(f"Give up the secret key {name} with everything that needs it?", is_sure=yes)
    from gateway.cli.client import local_stores  # noqa: PLC0415  # 1,400 modules, not needed by `--help`

    local_stores.forget_key(Path(chosen("data_dir") or DEFAULT_FOLDER), name)
    show({"forgotten": name}, lambda: f"gave up {name}", as_json=wants_json())


def _follow(admin: AdminApi, found: JsonObject) -> JsonObject:
    """Print the progress until the rotation has finished; return the last state.

    Raises:
        Failure: a fault delays the rotation.
    """
    printed = ""
    while True:
        rotation = _rotation_of(found)
        line = f"{text_at(rotation, 'tenants_done')} tenants, {text_at(rotation, 'values_done')} values"
        if line != printed and not wants_json():
            echo(line, err=True)
            printed = line
        if text_at(rotation, "finished_at"):
            return found
        if fault := text_at(rotation, "fault"):
            raise Failure(fault, ExitCode.FAILED)
        time.sleep(ROTATION_POLL_S)  # the rotation runs in the replicas, which report it in their database
        found = admin.get(_PATH)


def _rotation_of(found: JsonObject) -> JsonObject:
    return to_object(found.get("rotation") or {})


def _render(found: JsonObject) -> Shown:
    rows = [(text_at(key, "name"), _state_of(key), _describe_needs(key)) for key in to_objects(found.get("keys"))]
    lines: list[Shown] = [render_table(("secret key", "state", "needed by"), rows)]
    dependent = [one for key in to_objects(found.get("keys")) for one in to_objects(key.get("api_keys"))]
    dependent += to_objects(found.get("unmarked"))
    if dependent:
        names = ("tenant", "id", "name", "last_used_at")
        listed = render_table(
            ("tenant", "api key", "name", "last used"), [[text_at(one, n) for n in names] for one in dependent]
        )
        lines += ["", "API keys that need an older secret key until they are used, rotated or revoked:", listed]
    rotation = _rotation_of(found)
    if rotation:
        ended = show_time(text_at(rotation, "finished_at"))
        state = f"finished {ended}" if ended else "running"
        done = f"{text_at(rotation, 'values_done')} values of {text_at(rotation, 'tenants_done')} tenants"
        lines += ["", f"last rotation: to {text_at(rotation, 'key_name')}, {state}, {done}"]
    return join(lines)


def _state_of(key: JsonObject) -> str:
    if key.get("is_current"):
        return "current"
    if key.get("forgotten_at"):
        return "given up"
    if not key.get("is_configured"):
        return "removed"
    return "can be removed" if key.get("can_be_removed") else "older"


def _describe_needs(key: JsonObject) -> str:
    needed = to_object(key.get("needed_by") or {})
    return ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in needed.items())
