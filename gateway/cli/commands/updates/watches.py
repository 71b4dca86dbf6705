"""`gateway watch`: URLs that the gateway polls to detect changed resources."""

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.input.options import DURATION_OR_SECONDS
from gateway.cli.item_commands import BY_ID, add_delete, add_list, add_show, render_fields

_NOUN = "watches"
_FIELDS = ("id", "uri", "url", "interval_s", "credential", "checked_at", "changed_at", "failures", "fault")


@click.group(cls=Commands)
def watch() -> None:
    """List, show, create, change and delete a tenant's watches."""


@watch.command("create")
@click.argument("uri")
@click.argument("polled_url", metavar="URL")
@click.option(
    "--interval", type=DURATION_OR_SECONDS, default="1m", show_default=True, help="Time between two polls, 5s to 24h."
)
@click.option("--credential", help="The stored credential to send.")
@with_tenant
def create_watch(context: AdminContext, uri: str, polled_url: str, interval: int, credential: str | None) -> None:
    """Poll URL at an interval; when its content differs, the resource at URI has changed.

    \b
    Example:
      gateway watch create notes://today https://notes.example.com/today --interval 5m
    """
    body: JsonObject = {"uri": uri, "url": polled_url, "interval_s": interval}
    created = context.admin.send(
        "POST", context.tenant_path(_NOUN), body | ({"credential": credential} if credential else {})
    )
    context.show(created, lambda: render_fields(created, *_FIELDS))


@watch.command("update")
@click.argument("watch_id", metavar="ID")
@click.option("--look-at", "polled_url", help="The new URL to poll.")
@click.option("--interval", type=DURATION_OR_SECONDS, help="Time between two polls, 5s to 24h.")
@click.option("--credential", help="The stored credential to send; empty for none.")
@with_tenant
def update_watch(
    context: AdminContext, watch_id: str, polled_url: str | None, interval: int | None, credential: str | None
) -> None:
    """Change the URL, the interval or the credential of a watch.

    \b
    Example:
      gateway watch update wat_0123456789 --interval 1h
    """
    given: JsonObject = {"url": polled_url, "interval_s": interval}
    body = {name: value for name, value in given.items() if value is not None}
    body |= {} if credential is None else {"credential": credential or None}
    changed = context.admin.send("PATCH", context.tenant_path(_NOUN, watch_id), body)
    context.show(changed, lambda: render_fields(changed, *_FIELDS))


add_list(
    watch,
    _NOUN,
    "List a tenant's watches, with the outcome of the last poll.",
    ("id", "uri", "url", "interval_s", "checked_at", "changed_at", "fault"),
)
add_show(watch, _NOUN, "Show a watch, with the outcome of the last poll.", fields=_FIELDS, naming=BY_ID)
add_delete(watch, _NOUN, "Delete a watch; its URL is no longer polled.", naming=BY_ID)
