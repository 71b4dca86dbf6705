"""`gateway webhook-endpoint`: URLs of the tenant's own systems to which the gateway sends signed events."""

from collections.abc import Sequence

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.input.options import limit_option
from gateway.cli.item_commands import add_delete, add_list, add_show, render_fields
from gateway.cli.output.tables import render_table
from gateway.domain.updates.webhook_endpoints import DeliveryState, WebhookEventKind

_NOUN = "webhook-endpoints"
_FIELDS = ("name", "id", "url", "kinds", "description", "enabled", "notice", "failures", "old_secret_until", "secret")
_KINDS = [str(kind) for kind in WebhookEventKind]
_kind_option = click.option(
    "--kind", "kinds", type=click.Choice(_KINDS), multiple=True, help="A kind of event to send; may be repeated."
)


@click.group("webhook-endpoint", cls=Commands)
def webhook_endpoint() -> None:
    """List, show, create, change, rotate, test and delete outbound webhooks; read their log."""


@webhook_endpoint.command("create")
@click.argument("name")
@click.argument("sent_to", metavar="URL")
@_kind_option
@click.option("--description", default="", help="The description, for people.")
@with_tenant
def create_endpoint(context: AdminContext, name: str, sent_to: str, kinds: Sequence[str], description: str) -> None:
    """Send events to URL, and print the secret once; without --kind, every kind is sent.

    \b
    Example:
      gateway webhook-endpoint create alerts https://hooks.example.com/gateway --kind approval.requested
    """
    wanted: JsonObject = {"name": name, "url": sent_to, "kinds": list(kinds) or _KINDS, "description": description}
    made = context.admin.send("POST", context.tenant_path(_NOUN), wanted)
    context.show(made, lambda: render_fields(made, *_FIELDS))


@webhook_endpoint.command("update")
@click.argument("name")
@click.option("--send-to", help="The new URL.")
@_kind_option
@click.option("--description", help="The description, for people.")
@click.option("--enable/--disable", "enabled", default=None, help="Resume or pause delivery.")
@with_tenant
def update_endpoint(
    context: AdminContext,
    name: str,
    send_to: str | None,
    kinds: Sequence[str],
    description: str | None,
    enabled: bool | None,
) -> None:
    """Change, enable or disable a webhook endpoint.

    \b
    Example:
      gateway webhook-endpoint update alerts --disable
    """
    given: JsonObject = {
        "url": send_to,
        "kinds": list(kinds) or None,
        "description": description,
        "enabled": enabled,
    }
    wanted = {field: value for field, value in given.items() if value is not None}
    changed = context.admin.send("PATCH", context.tenant_path(_NOUN, name), wanted)
    context.show(changed, lambda: render_fields(changed, *_FIELDS))


@webhook_endpoint.command("rotate")
@click.argument("name")
@with_tenant
def rotate_endpoint(context: AdminContext, name: str) -> None:
    """Rotate the secret of a webhook endpoint and print the new one once; for a day, both secrets sign."""
    rotated = context.admin.send("POST", context.tenant_path(_NOUN, name, "rotate"))
    context.show(rotated, lambda: render_fields(rotated, *_FIELDS))


@webhook_endpoint.command("test")
@click.argument("name")
@with_tenant
def test_endpoint(context: AdminContext, name: str) -> None:
    """Send a test event to a webhook endpoint."""
    made = context.admin.send("POST", context.tenant_path(_NOUN, name, "test"))
    context.show(
        made, lambda: f"queued {text_at(made, 'id')}; `gateway webhook-endpoint deliveries {name}` shows its state"
    )


@webhook_endpoint.command("deliveries")
@click.argument("name")
@click.option(
    "--state", type=click.Choice([str(state) for state in DeliveryState]), help="Only deliveries in this state."
)
@click.option("--kind", help="Only deliveries of this kind of event.")
@limit_option
@with_tenant
def list_deliveries(context: AdminContext, name: str, state: str | None, kind: str | None, limit: int | None) -> None:
    """List the deliveries of a webhook endpoint, the newest first."""
    path = context.tenant_path(_NOUN, name, "deliveries")
    query = {field: value for field, value in (("state", state), ("kind", kind)) if value is not None}
    items = list(context.admin.pages(path, limit=limit, query=query))
    names = ("id", "kind", "state", "attempts", "status", "created_at", "error")
    context.show(items, lambda: render_table(names, [[text_at(item, name) for name in names] for item in items]))


@webhook_endpoint.command("delivery")
@click.argument("name")
@click.argument("delivery")
@with_tenant
def show_delivery(context: AdminContext, name: str, delivery: str) -> None:
    """Show a delivery, with its payload."""
    found = context.admin.get(context.tenant_path(_NOUN, name, "deliveries", delivery))
    context.show(found, lambda: render_fields(found))


@webhook_endpoint.command("replay")
@click.argument("name")
@click.argument("delivery")
@with_tenant
def replay_delivery(context: AdminContext, name: str, delivery: str) -> None:
    """Send a delivery again, under its own id.

    \b
    Example:
      gateway webhook-endpoint replay alerts msg_0123456789
    """
    again = context.admin.send("POST", context.tenant_path(_NOUN, name, "deliveries", delivery, "replay"))
    context.show(again, lambda: f"replayed {delivery}")


add_list(
    webhook_endpoint,
    _NOUN,
    "List a tenant's webhook endpoints, without their secrets.",
    ("name", "id", "url", "enabled", "failures", "notice"),
)
add_show(webhook_endpoint, _NOUN, "Show a webhook endpoint, without its secrets.", fields=_FIELDS)
add_delete(webhook_endpoint, _NOUN, "Delete a webhook endpoint with its deliveries.")
