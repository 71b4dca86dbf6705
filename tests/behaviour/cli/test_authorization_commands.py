"""Clients, consents and grants of a tenant's authorization server, and accounts of users, from the command line."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.behaviour.cli.conftest import Terminal
from tests.support.accounts import connect_account
from tests.support.authorization import BACK, Application, register
from tests.support.gateway import RunningGateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.serving import http_client
from tests.support.stand import Stand
from tests.support.upstream import RecordingUpstream


@pytest.fixture
async def application(gateway: RunningGateway, upstream: RecordingUpstream) -> AsyncGenerator[Application]:
    """An application of `corp:ada` at the tenant of the terminal."""
    await gateway.create_tenant("acme")
    provider = LocalProvider(new_issuer(upstream))
    await add_provider(gateway, "acme", provider)
    async with http_client(timeout=30) as http:
        yield Application(gateway, provider, (await register(gateway))["id"], http)


async def test_a_client_lives_from_create_to_delete(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: a client is registered, shown without its secret, changed, rotated and deleted (PRG-3, IDN-2)."""
    await gateway.create_tenant("acme")
    refused = await terminal.run("client", "create", "Reports", "--redirect-uri", "javascript:alert(1)")
    assert (refused.code != 0, "redirect_uris" in refused.err) == (True, True)

    confidential = ("--redirect-uri", BACK, "--confidential", "--json")
    made: Any = (await terminal.do("client", "create", "Reports", *confidential)).value
    assert made["secret"]
    listed = await terminal.do("client", "list", "--kind", "registered", "--sort", "-name", "--search", "reports")
    shown = await terminal.do("client", "show", made["id"])
    for printed in (listed, shown):
        assert made["id"] in printed.out
        assert made["secret"] not in printed.out
    renamed: Any = (await terminal.do("client", "update", made["id"], "--name", "Numbers", "--json")).value
    assert (renamed["name"], renamed["redirect_uris"]) == ("Numbers", [BACK])
    rotated: Any = (await terminal.do("client", "rotate", made["id"], "--json")).value
    assert rotated["secret"] not in {None, made["secret"]}

    assert (await terminal.run("client", "delete", made["id"])).code == 2
    assert (await terminal.do("client", "delete", made["id"], "--yes")).out == f"deleted {made['id']}\n"
    assert (await terminal.run("client", "show", made["id"])).code == 5


async def test_consents_and_grants_are_listed_and_revoked(terminal: Terminal, application: Application) -> None:
    """Ours: an administrator sees what people permitted, and revokes a grant alone or with its consent (IDN-2)."""
    first, second = [await application.tokens() for _ in range(2)]
    of_ada = ("--subject", "corp:ada", "--client", application.client_id, "--sort", "created_at")
    consents: Any = (await terminal.do("consent", "list", *of_ada, "--json")).value
    grants: Any = (await terminal.do("grant", "list", *of_ada, "--json")).value
    ([consent], [oldest, newest]) = (consents, grants)
    assert "client.example" in (await terminal.do("consent", "show", consent["id"])).out
    assert "active" in (await terminal.do("grant", "show", oldest["id"])).out
    assert "Reports" in (await terminal.do("consent", "list", "--search", "REPORTS")).out

    assert (await terminal.do("grant", "revoke", oldest["id"])).out == f"revoked {oldest['id']}\n"
    assert [await application.status(each["access_token"]) for each in (first, second)] == [401, 200]
    assert (await terminal.run("grant", "revoke", "none")).code == 5
    assert newest["id"] in (await terminal.do("grant", "list", "--state", "active")).out

    assert (await terminal.run("consent", "revoke", consent["id"])).code == 2
    revoked = await terminal.do("consent", "revoke", consent["id"], "--yes", "--json")
    assert revoked.value == {"revoked": consent["id"]}
    assert await application.status(second["access_token"]) == 401


async def test_accounts_are_listed_shown_and_disconnected(
    terminal: Terminal, gateway: RunningGateway, stand: Stand, upstream: RecordingUpstream
) -> None:
    """Ours: an administrator sees which accounts users have connected, and ends one (IDN-3, PRG-3)."""
    await gateway.create_tenant("acme")
    await connect_account(stand.database.app_url, stand.redis_url, upstream, "acme")
    listed: Any = (await terminal.do("account", "list", "--json")).value
    [account] = listed
    assert "token" not in " ".join(account)
    shown = await terminal.do("account", "show", account["id"])
    assert account["credential"] in shown.out

    assert (await terminal.run("account", "disconnect", account["id"])).code == 2
    ended = await terminal.do("account", "disconnect", account["id"], "--yes")
    assert ended.out == f"disconnected {account['id']}\n"
    assert (await terminal.run("account", "show", account["id"])).code == 5
    assert (await terminal.do("account", "list", "--json")).value == []
