"""`gateway watch`: URLs that the gateway polls to detect changed resources."""

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, confirm, with_tenant
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.input.list_options import ListArguments, list_options
from gateway.cli.input.options import yes_option
from gateway.cli.output.tables import render_pairs, render_table

_NOUN = "watches"
_INTERVAL = click.IntRange(min=5, max=86_400)


@click.group(cls=Commands)
def watch() -> None:
    """List, show, create, change and delete a tenant's watches."""


@watch.command("list")
@list_options(_NOUN)
@with_tenant
def list_watches(context: AdminContext, wanted: ListArguments) -> None:
    """List a tenant's watches, with the outcome of the last poll."""
    items = list(context.admin.pages(context.tenant_path(_NOUN), limit=wanted.limit, query=wanted.query))
    titles = ("id", "uri", "url", "seconds", "checked", "changed", "fault")
    names = ("id", "uri", "url", "interval_s", "checked_at", "changed_at", "fault")
    context.show(items, lambda: render_table(titles, [[text_at(item, name) for name in names] for item in items]))


@watch.command("show")
@click.argument("watch_id", metavar="ID")
@with_tenant
def show_watch(context: AdminContext, watch_id: str) -> None:
    """Show a watch, with the outcome of the last poll."""
    found = context.admin.get(context.tenant_path(_NOUN, watch_id))
    context.show(found, lambda: _describe(found))


@watch.command("create")
@click.argument("uri")
@click.argument("polled_url", metavar="URL")
@click.option("--interval", type=_INTERVAL, default=60, show_default=True, help="Seconds between two polls.")
@click.option("--credential", help="The stored credential to send.")
@with_tenant
def create_watch(context: AdminContext, uri: str, polled_url: str, interval: int, credential: str | None) -> None:
    """Poll URL at an interval; when its content differs, the resource at URI has changed."""
    body: JsonObject = {"uri": uri, "url": polled_url, "interval_s": interval}
    created = context.admin.send(
        "POST", context.tenant_path(_NOUN), body | ({"credential": credential} if credential else {})
    )
    context.show(created, lambda: _describe(created))


@watch.command("update")
@click.argument("watch_id", metavar="ID")
@click.option("--look-at", "polled_url", help="The new URL to poll.")
@click.option("--interval", type=_INTERVAL, help="Seconds between two polls.")
@click.option("--credential", help="The stored credential to send; empty for none.")
@with_tenant
def update_watch(
    context: AdminContext, watch_id: str, polled_url: str | None, interval: int | None, credential: str | None
) -> None:
    """Change the URL, the interval or the credential of a watch."""
    given: JsonObject = {"url": polled_url, "interval_s": interval}
    body = {name: value for name, value in given.items() if value is not None}
    body |= {} if credential is None else {"credential": credential or None}
    changed = context.admin.send("PATCH", context.tenant_path(_NOUN, watch_id), body)
    context.show(changed, lambda: _describe(changed))


@watch.command("delete")
@click.argument("watch_id", metavar="ID")
@yes_option
@with_tenant
def delete_watch(context: AdminContext, watch_id: str, yes: bool) -> None:
    """Delete a watch; its URL is no longer polled."""
    confirm(f"Delete watch {watch_id}?", is_sure=yes)
    context.admin.send("DELETE", context.tenant_path(_NOUN, watch_id))
    context.show({"deleted": watch_id}, lambda: f"deleted {watch_id}")


def _describe(found: JsonObject) -> str:
    names = ("id", "uri", "url", "interval_s", "credential", "checked_at", "changed_at", "failures", "fault")
    return render_pairs([(name.removesuffix("_at").removesuffix("_s"), text_at(found, name)) for name in names])
