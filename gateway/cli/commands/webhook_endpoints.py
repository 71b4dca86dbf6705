"""`gateway webhook-endpoint`: URLs of the tenant's own systems to which the gateway sends signed events."""

import click

from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.json_fields import text_at
from gateway.cli.input.options import limit_option
from gateway.cli.item_commands import add_action, render_fields
from gateway.cli.kinds.commands import KindCommands
from gateway.cli.kinds.places import naming_of
from gateway.cli.object_names import object_argument
from gateway.cli.output.tables import render_table
from gateway.domain.updates.webhook_endpoints import DeliveryState
from gateway.kinds.deliveries import WEBHOOK_ENDPOINT

_NOUN = "webhook-endpoints"


webhook_endpoint = KindCommands(kind=WEBHOOK_ENDPOINT, loss=" with its deliveries").group()


add_action(
    webhook_endpoint,
    "test",
    "Send a test event to webhook endpoints.",
    naming=naming_of(WEBHOOK_ENDPOINT),
    describe=lambda name, made: (
        f"queued {text_at(made, 'id')}; `gateway webhook-endpoint deliveries {name}` shows its state"
    ),
)


@webhook_endpoint.command("deliveries")
@object_argument(naming_of(WEBHOOK_ENDPOINT))
@click.option(
    "--state", type=click.Choice([str(state) for state in DeliveryState]), help="Only deliveries in this state."
)
@click.option("--kind", help="Only deliveries of this kind of event.")
@limit_option
@with_tenant
def list_deliveries(
    context: AdminContext, name: str, state: str | None, kind: str | None, *, limit: int | None
) -> None:
    """List the deliveries of a webhook endpoint, the newest first."""
    path = context.tenant_path(_NOUN, name, "deliveries")
    query = {field: value for field, value in (("state", state), ("kind", kind)) if value is not None}
    items = list(context.admin.pages(path, limit=limit, query=query))
    names = ("id", "kind", "state", "attempts", "status", "created_at", "error")
    context.show(items, lambda: render_table(names, [[text_at(item, name) for name in names] for item in items]))


@webhook_endpoint.command("delivery")
@object_argument(naming_of(WEBHOOK_ENDPOINT))
@click.argument("delivery")
@with_tenant
def show_delivery(context: AdminContext, name: str, delivery: str) -> None:
    """Show a delivery, with its payload."""
    found = context.admin.get(context.tenant_path(_NOUN, name, "deliveries", delivery))
    context.show(found, lambda: render_fields(found))


@webhook_endpoint.command("replay")
@object_argument(naming_of(WEBHOOK_ENDPOINT))
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
