"""`gateway consent` and `gateway grant`: permissions of people for clients of the authorization server."""

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, confirm_at_terminal, with_tenant
from gateway.cli.input.options import yes_option
from gateway.cli.item_commands import BY_ID, add_delete, add_list, add_show

_CONSENTS, _GRANTS = "consents", "grants"


@click.group("consent", cls=Commands)
def consent() -> None:
    """List, show and revoke the consents of people to clients."""


@click.group("grant", cls=Commands)
def grant() -> None:
    """List, show and revoke the grants of people to clients."""


@grant.command("revoke")
@click.argument("grant_id", metavar="ID")
@yes_option
@with_tenant
def revoke_grant(context: AdminContext, grant_id: str, yes: bool) -> None:
    """Refuse the tokens of a grant everywhere within five seconds; the consent stays. On a terminal, it asks first."""
    confirm_at_terminal(f"Revoke grant {grant_id}?", is_sure=yes)
    revoked = context.admin.send("POST", context.tenant_path(_GRANTS, grant_id, "revoke"))
    context.show(revoked, lambda: f"revoked {grant_id}")


add_list(
    consent,
    _CONSENTS,
    "List the consents of a tenant's people.",
    ("id", "subject", "client_name", "client_id", "redirect_host", "resource", "created_at"),
)
add_list(
    grant,
    _GRANTS,
    "List the grants under which tokens were issued.",
    ("id", "subject", "client_name", "profile", "state", "used_at", "ends_at"),
)
add_show(consent, _CONSENTS, "Show a consent.", naming=BY_ID)
add_show(grant, _GRANTS, "Show a grant.", naming=BY_ID)
add_delete(
    consent,
    _CONSENTS,
    "Delete a consent, and revoke the grants of its client; the person is asked again.",
    naming=BY_ID,
    verb="revoke",
)
