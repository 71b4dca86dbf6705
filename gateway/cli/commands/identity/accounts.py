"""`gateway account`: the accounts that users have connected at upstreams."""

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, confirm, with_tenant
from gateway.cli.input.options import yes_option
from gateway.cli.item_commands import add_list, add_show

_NOUN = "accounts"
_SHOWN_FIELDS = ("id", "subject", "credential", "state", "scopes", "refreshed_at", "created_at")


@click.group("account", cls=Commands)
def account() -> None:
    """List, show and disconnect the accounts of users at upstreams."""


@account.command("disconnect")
@click.argument("account_id", metavar="ID")
@yes_option
@with_tenant
def disconnect_account(context: AdminContext, account_id: str, yes: bool) -> None:
    """Delete an account and its tokens, and revoke them at the upstream if it can; the user can connect again."""
    confirm(f"Disconnect account {account_id}?", is_sure=yes)
    context.admin.send("DELETE", context.tenant_path(_NOUN, account_id))
    context.show({"disconnected": account_id}, lambda: f"disconnected {account_id}")


add_list(account, _NOUN, "List the accounts of a tenant's users, without their tokens.", _SHOWN_FIELDS)
add_show(account, _NOUN, "Show an account, without its tokens.", fields=_SHOWN_FIELDS, metavar="ID")
