"""Endpoints of the accounts that users have connected at upstreams."""

from gateway.admin.crud import Noun, each
from gateway.admin.list_search import ACCOUNTS
from gateway.admin.requests.grants import AccountListQuery
from gateway.admin.responses.accounts import AccountPage, AccountShown
from gateway.catalog.identity import accounts
from gateway.domain.tenancy.accounts import UserAccount

_ACCOUNT: Noun[UserAccount] = Noun(
    singular="account", path="/tenants/{t}/accounts", key="id", shown=AccountShown, show=each(AccountShown.of)
)

ENDPOINTS = (
    _ACCOUNT.list_route(
        "List the accounts that users have connected, without their tokens.",
        accounts.page_accounts,
        ACCOUNTS,
        AccountListQuery,
        AccountPage,
    ),
    _ACCOUNT.show_route("Show an account, without its tokens.", accounts.get_account),
    _ACCOUNT.delete_route(
        "Disconnect an account, and revoke its tokens at the upstream if it can.", accounts.disconnect_account
    ),
)
