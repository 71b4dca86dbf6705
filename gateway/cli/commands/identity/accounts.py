"""`gateway account`: the accounts that users have connected at upstreams."""

import click

from gateway.cli.click_group import Commands
from gateway.cli.item_commands import BY_ID, add_delete, add_list, add_show

_NOUN = "accounts"
_SHOWN_FIELDS = ("id", "subject", "credential", "state", "scopes", "refreshed_at", "created_at")


@click.group("account", cls=Commands)
def account() -> None:
    """List, show and disconnect the accounts of users at upstreams."""


add_list(account, _NOUN, "List the accounts of a tenant's users, without their tokens.", _SHOWN_FIELDS)
add_show(account, _NOUN, "Show an account, without its tokens.", fields=_SHOWN_FIELDS, naming=BY_ID)
add_delete(
    account,
    _NOUN,
    "Delete an account and its tokens, and revoke them at the upstream if it can; the user can connect again.",
    naming=BY_ID,
    verb="disconnect",
)
