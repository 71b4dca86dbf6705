"""`gateway account`: the accounts that users have connected at upstreams."""

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, confirm, with_tenant
from gateway.cli.input.json_fields import text_at
from gateway.cli.input.list_options import ListArguments, list_options
from gateway.cli.input.options import yes_option
from gateway.cli.output.tables import render_pairs, render_table

_NOUN = "accounts"
_SHOWN_FIELDS = ("id", "subject", "credential", "state", "scopes", "refreshed_at", "created_at")


@click.group("account", cls=Commands)
def account() -> None:
    """List, show and disconnect the accounts of users at upstreams."""


@account.command("list")
@list_options(_NOUN)
@with_tenant
def list_accounts(context: AdminContext, wanted: ListArguments) -> None:
    """List the accounts of a tenant's users, without their tokens."""
    items = list(context.admin.pages(context.tenant_path(_NOUN), limit=wanted.limit, query=wanted.query))
    context.show(
        items, lambda: render_table(_SHOWN_FIELDS, [[text_at(item, name) for name in _SHOWN_FIELDS] for item in items])
    )


@account.command("show")
@click.argument("account_id", metavar="ID")
@with_tenant
def show_account(context: AdminContext, account_id: str) -> None:
    """Show an account, without its tokens."""
    found = context.admin.get(context.tenant_path(_NOUN, account_id))
    context.show(
        found, lambda: render_pairs([(name.replace("_", " "), text_at(found, name)) for name in _SHOWN_FIELDS])
    )


@account.command("disconnect")
@click.argument("account_id", metavar="ID")
@yes_option
@with_tenant
def disconnect_account(context: AdminContext, account_id: str, yes: bool) -> None:
    """Delete an account and its tokens, and revoke them at the upstream if it can; the user can connect again."""
    confirm(f"Disconnect account {account_id}?", is_sure=yes)
    context.admin.send("DELETE", context.tenant_path(_NOUN, account_id))
    context.show({"disconnected": account_id}, lambda: f"disconnected {account_id}")
