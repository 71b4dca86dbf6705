"""`gateway audit sink`: external systems that receive a tenant's audit trail."""

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, confirm, with_tenant
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.input.list_options import ListArguments, list_options
from gateway.cli.input.options import yes_option
from gateway.cli.output.tables import render_pairs, render_table
from gateway.domain.audit import SinkKind

_NOUN = "audit-sinks"
_COLUMNS = ("name", "kind", "target", "enabled", "delivered", "delivered_at", "failures", "fault")


@click.group(cls=Commands)
def sink() -> None:
    """Deliver a tenant's audit trail to external systems, at least once."""


@sink.command("list")
@list_options(_NOUN)
@with_tenant
def list_sinks(context: AdminContext, wanted: ListArguments) -> None:
    """List the sinks with the state of their delivery."""
    items = list(context.admin.pages(context.tenant_path(_NOUN), limit=wanted.limit, query=wanted.query))
    rows = [[text_at(item, name) for name in _COLUMNS] for item in items]
    context.show(items, lambda: render_table([name.replace("_", " ") for name in _COLUMNS], rows))


@sink.command("show")
@click.argument("name")
@with_tenant
def show_sink(context: AdminContext, name: str) -> None:
    """Show a sink with the state of its delivery and the time of the oldest undelivered entry."""
    found = context.admin.get(context.tenant_path(_NOUN, name))
    context.show(found, lambda: _describe(found))


@sink.command("create")
@click.argument("name")
@click.argument("kind", type=click.Choice([kind.value for kind in SinkKind]))
@click.argument("target")
@click.option("--credential", help="The stored credential to send; https only.")
@click.option("--whole", is_flag=True, help="Deliver the whole trail; default: the entries from now on.")
@with_tenant
def create_sink(
    context: AdminContext, name: str, kind: str, target: str, credential: str | None, *, whole: bool
) -> None:
    """Deliver to TARGET: an https URL, tcp://HOST:PORT or tls://HOST:PORT for syslog, or a file name."""
    wanted: JsonObject = {"name": name, "kind": kind, "target": target, "whole": whole}
    wanted |= {"credential": credential} if credential else {}
    made = context.admin.send("POST", context.tenant_path(_NOUN), wanted)
    context.show(made, lambda: _describe(made))


@sink.command("update")
@click.argument("name")
@click.option("--target", help="The new target.")
@click.option("--credential", help="The stored credential to send; empty for none.")
@click.option("--enable/--disable", "enabled", default=None, help="Resume or pause delivery.")
@with_tenant
def update_sink(
    context: AdminContext, name: str, target: str | None, credential: str | None, *, enabled: bool | None
) -> None:
    """Change the target, the credential or the state of a sink; its position in the trail is kept."""
    given: JsonObject = {"target": target, "enabled": enabled}
    wanted = {member: value for member, value in given.items() if value is not None}
    wanted |= {} if credential is None else {"credential": credential or None}
    changed = context.admin.send("PATCH", context.tenant_path(_NOUN, name), wanted)
    context.show(changed, lambda: _describe(changed))


@sink.command("delete")
@click.argument("name")
@yes_option
@with_tenant
def delete_sink(context: AdminContext, name: str, yes: bool) -> None:
    """Delete a sink with its position in the trail."""
    confirm(f"Delete sink {name}?", is_sure=yes)
    context.admin.send("DELETE", context.tenant_path(_NOUN, name))


def _describe(found: JsonObject) -> str:
    names = (*_COLUMNS, "waiting_since", "credential", "id")
    return render_pairs([(name.replace("_", " "), text_at(found, name)) for name in names])
