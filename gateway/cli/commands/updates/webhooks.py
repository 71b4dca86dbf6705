"""`gateway webhook`: URLs at which a tenant's own systems report changed resources."""

import json
import secrets
import time

import click
import httpx

from gateway.catalog.updates.signatures import PREFIX, sign
from gateway.cli.click_group import Commands
from gateway.cli.client.admin_api import failure_from
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.item_commands import add_delete, add_list
from gateway.cli.output.tables import render_pairs
from gateway.cli.transport_failures import transport_failure

_NOUN = "webhooks"
_TIMEOUT_S = 30.0


@click.group(cls=Commands)
def webhook() -> None:
    """List, show, create, rotate, test and delete a tenant's webhooks."""


@webhook.command("show")
@click.argument("name")
@with_tenant
def show_webhook(context: AdminContext, name: str) -> None:
    """Show a webhook, without its secrets."""
    found = context.admin.get(context.tenant_path(_NOUN, name))
    context.show(found, lambda: _describe(context, found))


@webhook.command("create")
@click.argument("name")
@with_tenant
def create_webhook(context: AdminContext, name: str) -> None:
    """Create a webhook and print its URL and its secret; the secret is not shown again.

    \b
    Example:
      gateway webhook create crm
    """
    made = context.admin.send("POST", context.tenant_path(_NOUN), {"name": name})
    context.show(made, lambda: _describe(context, made))


@webhook.command("rotate")
@click.argument("name")
@with_tenant
def rotate_webhook(context: AdminContext, name: str) -> None:
    """Rotate the secret of a webhook and print the new one once; the previous one stays valid for a day."""
    rotated = context.admin.send("POST", context.tenant_path(_NOUN, name, "rotate"))
    context.show(rotated, lambda: _describe(context, rotated))


@webhook.command("test")
@click.argument("name")
@click.argument("uri")
@click.option(
    "--secret", envvar="GATEWAY_WEBHOOK_SECRET", help="The signing secret; safer in the environment variable."
)
@with_tenant
def test_webhook(context: AdminContext, name: str, uri: str, secret: str | None) -> None:
    """Send a signed delivery that reports a change of URI, as the tenant's own system would.

    \b
    Example:
      GATEWAY_WEBHOOK_SECRET=… gateway webhook test crm notes://today
    """
    if not secret or not secret.startswith(PREFIX):
        message = f"no secret: set GATEWAY_WEBHOOK_SECRET to the secret ({PREFIX}…) that was returned at creation"
        raise Failure(message, ExitCode.USAGE)
    path = text_at(context.admin.get(context.tenant_path(_NOUN, name)), "path")
    delivery = f"test_{secrets.token_hex(12)}"
    _deliver(context.admin.url + path, secret, delivery, json.dumps({"uri": uri}).encode())
    context.show({"delivery": delivery, "updated": uri}, lambda: f"delivered {delivery}: {uri} has changed")


def _deliver(url: str, secret: str, delivery: str, body: bytes) -> None:
    at = str(int(time.time()))
    try:
        signature = sign(secret, delivery=delivery, at=at, body=body)
    except ValueError:
        raise Failure("the secret is not base64 after its prefix", ExitCode.USAGE) from None
    headers = {
        "content-type": "application/json",
        "webhook-id": delivery,
        "webhook-timestamp": at,
        "webhook-signature": signature,
    }
    try:
        response = httpx.post(url, content=body, headers=headers, timeout=_TIMEOUT_S, trust_env=False)
    except httpx.TransportError as error:
        raise transport_failure(url, error) from None
    if not response.is_success:
        raise failure_from(response)


def _describe(context: AdminContext, found: JsonObject) -> str:
    names = ("name", "id", "old_secret_until", "created_at", "updated_at")
    pairs = [(name.removesuffix("_at").replace("_", " "), text_at(found, name)) for name in names]
    secret = text_at(found, "secret")
    shown = [("url", context.admin.url + text_at(found, "path")), *([("secret", secret)] if secret else [])]
    return render_pairs([*pairs, *shown])


add_list(
    webhook,
    _NOUN,
    "List a tenant's webhooks, without their secrets.",
    ("name", "id", "path", "old_secret_until"),
)
add_delete(webhook, _NOUN, "Delete a webhook; further deliveries to it are refused.")
