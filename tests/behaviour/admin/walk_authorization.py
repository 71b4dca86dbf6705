"""The part of the walk about clients of the authorization server, consents, grants and accounts of users."""

from tests.behaviour.admin.walk import Walk
from tests.support.accounts import connect_account, user_credential
from tests.support.authorization import BACK, Application
from tests.support.gateway import RunningGateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.serving import http_client
from tests.support.stand import Stand
from tests.support.upstream import RecordingUpstream

ACME = "/tenants/acme"


async def walk_authorization(walk: Walk, gateway: RunningGateway, upstream: RecordingUpstream) -> None:
    """Every route of clients, consents and grants, in success and in refusal."""
    before, clients = upstream.body, f"{ACME}/clients"
    body = {"name": "Reports", "redirect_uris": [BACK], "confidential": True}
    made = await walk.ask("POST", clients, 201, json=body)
    path = f"{clients}/{made.json()['id']}"
    assert made.headers["location"] == f"/admin/v1{path}"
    await walk.ask("POST", clients, 400, json={**body, "redirect_uris": ["http://client.example/"]})
    await walk.ask("POST", clients, 400, json={**body, "redirect_uris": []})
    listed, shown = await walk.ask("GET", clients, 200), await walk.ask("GET", path, 200)
    assert listed.json()["items"] == [shown.json()]
    assert made.json()["secret"] not in listed.text + shown.text
    stale = {"if-match": made.headers["etag"]}
    assert (await walk.ask("PATCH", path, 200, json={"name": "Figures"}, headers=stale)).json()["name"] == "Figures"
    await walk.ask("PATCH", path, 412, json={"name": "Other"}, headers=stale)
    await walk.ask("POST", f"{path}/rotate", 412, headers=stale)
    rotated = await walk.ask("POST", f"{path}/rotate", 200)
    public = (await walk.ask("POST", clients, 201, json={**body, "confidential": False})).json()
    await walk.ask("POST", f"{clients}/{public['id']}/rotate", 409)
    await _walk_grants(walk, gateway, upstream, rotated.json())
    await walk.ask("DELETE", path, 412, headers=stale)
    await walk.ask("DELETE", path, 204)
    await walk.ask("GET", path, 404)
    await walk.ask("DELETE", f"{ACME}/issuers/login", 204)
    upstream.body = before


async def walk_accounts(walk: Walk, stand: Stand, upstream: RecordingUpstream) -> None:
    """Every route of accounts; only a gateway with a public URL connects one."""
    accounts = f"{ACME}/accounts"
    await walk.ask("POST", f"{ACME}/credentials", 400, json=user_credential(upstream))
    await connect_account(stand.database.app_url, stand.redis_url, upstream, "acme")
    [account] = (await walk.ask("GET", accounts, 200)).json()["items"]
    assert (account["credential"], account["scopes"]) == ("tracker", ["read"])
    shown = await walk.ask("GET", f"{accounts}/{account['id']}", 200)
    assert shown.json() == account
    await walk.ask("GET", f"{accounts}/none", 404)
    await walk.ask("DELETE", f"{accounts}/{account['id']}", 412, headers={"if-match": '"none"'})
    await walk.ask("DELETE", f"{accounts}/{account['id']}", 204)


async def _walk_grants(
    walk: Walk, gateway: RunningGateway, upstream: RecordingUpstream, client: dict[str, str]
) -> None:
    consents, grants, issuer = f"{ACME}/consents", f"{ACME}/grants", new_issuer(upstream)
    provider = LocalProvider(issuer, answer={"jwks_uri": f"{issuer.url}/walk"})  # keys of the other URL are cached
    await add_provider(gateway, "acme", provider, name="login")
    async with http_client(timeout=30) as http:
        application = Application(gateway, provider, client["id"], http, secret=client["secret"])
        held = [await application.tokens() for _ in range(2)]
    [consent] = (await walk.ask("GET", consents, 200)).json()["items"]
    assert (await walk.ask("GET", f"{consents}/{consent['id']}", 200)).json() == consent
    listed = await walk.ask("GET", grants, 200)
    first, second = listed.json()["items"]
    assert not [tokens for tokens in held if tokens["refresh_token"].rpartition(".")[2] in listed.text]
    shown = await walk.ask("GET", f"{grants}/{first['id']}", 200)
    assert shown.json() == first
    await walk.ask("POST", f"{grants}/{first['id']}/revoke", 412, headers={"if-match": '"none"'})
    revoked = await walk.ask("POST", f"{grants}/{first['id']}/revoke", 200)
    assert (revoked.json()["state"], revoked.json()["revoked_for"]) == ("revoked", "operator")
    await walk.ask("POST", f"{grants}/none/revoke", 404)
    await walk.ask("DELETE", f"{consents}/none", 404)
    await walk.ask("DELETE", f"{consents}/{consent['id']}", 204)
    assert (await walk.ask("GET", f"{grants}/{second['id']}", 200)).json()["state"] == "revoked"
