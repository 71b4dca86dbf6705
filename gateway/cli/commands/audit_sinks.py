"""`gateway audit sink`: external systems that receive a tenant's audit trail."""

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.item_commands import add_delete, add_list, add_show, render_fields
from gateway.domain.audit import SinkKind

_NOUN = "audit-sinks"
_COLUMNS = ("name", "kind", "target", "enabled", "delivered", "delivered_at", "failures", "fault")
_FIELDS = (*_COLUMNS, "waiting_since", "credential", "id")


@click.group(cls=Commands)
def sink() -> None:
    """Deliver a tenant's audit trail to external systems, at least once."""


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
    """Deliver to TARGET: an https URL, tcp://HOST:PORT or tls://HOST:PORT for syslog, or a file name.

    \b
    Example:
      gateway audit sink create siem syslog tls://siem.example.com:6514
    """
    wanted: JsonObject = {"name": name, "kind": kind, "target": target, "whole": whole}
    wanted |= {"credential": credential} if credential else {}
    made = context.admin.send("POST", context.tenant_path(_NOUN), wanted)
    context.show(made, lambda: render_fields(made, *_FIELDS))


@sink.command("update")
@click.argument("name")
@click.option("--target", help="The new target.")
@click.option("--credential", help="The stored credential to send; empty for none.")
@click.option("--enable/--disable", "enabled", default=None, help="Resume or pause delivery.")
@with_tenant
def update_sink(
    context: AdminContext, name: str, target: str | None, credential: str | None, *, enabled: bool | None
) -> None:
    """Change the target, the credential or the state of a sink; its position in the trail is kept.

    \b
    Example:
      gateway audit sink update siem --disable
    """
    given: JsonObject = {"target": target, "enabled": enabled}
    wanted = {member: value for member, value in given.items() if value is not None}
    wanted |= {} if credential is None else {"credential": credential or None}
    changed = context.admin.send("PATCH", context.tenant_path(_NOUN, name), wanted)
    context.show(changed, lambda: render_fields(changed, *_FIELDS))


add_list(sink, _NOUN, "List the sinks with the state of their delivery.", _COLUMNS)
add_show(
    sink,
    _NOUN,
    "Show a sink with the state of its delivery and the time of the oldest undelivered entry.",
    fields=_FIELDS,
)
add_delete(sink, _NOUN, "Delete a sink with its position in the trail.")
