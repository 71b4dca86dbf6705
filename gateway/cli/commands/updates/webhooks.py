"""`gateway webhook`: URLs at which a tenant's own systems report changed resources."""

import json
import secrets
import time

import click
import httpx

from gateway.catalog.updates.signatures import PREFIX, sign
from gateway.cli.client.admin_api import failure_from
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import text_at
from gateway.cli.kinds.commands import KindCommands
from gateway.cli.kinds.places import naming_of
from gateway.cli.limits import WEBHOOK_S
from gateway.cli.object_names import object_argument
from gateway.cli.transport_failures import transport_failure
from gateway.kinds.deliveries import WEBHOOK

webhook = KindCommands(kind=WEBHOOK).group()


@webhook.command("test")
@object_argument(naming_of(WEBHOOK))
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
    path = text_at(context.admin.get(context.tenant_path(WEBHOOK.plural, name)), "status", "path")
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
        response = httpx.post(url, content=body, headers=headers, timeout=WEBHOOK_S, trust_env=False)
    except httpx.TransportError as error:
        raise transport_failure(url, error) from None
    if not response.is_success:
        raise failure_from(response)
