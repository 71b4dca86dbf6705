"""Attacks with clients: registrations that should not be, floods of them, stolen and guessed secrets."""

import base64
from typing import Any

import pytest

from gateway.catalog.identity import oauth_clients
from gateway.protocol.authorization import endpoints
from tests.support.authorization import BACK, VERIFIER, Application, register
from tests.support.gateway import running_gateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.servers import TestDatabase, TestServers, execute
from tests.support.upstream import recording_upstream

REGISTER = "/t/acme/oauth/register"


async def test_a_client_registers_only_where_it_may(application: Application) -> None:
    """RFC 7591: registration is off unless an administrator permits it (IDN-2)."""
    path = "/.well-known/oauth-authorization-server/t/acme"
    http, sign_in = application.gateway.http, application.provider.client
    assert "registration_endpoint" in (await http.get(path)).json()
    changed = await application.gateway.admin.patch("/tenants/acme/issuers/corp", json={"sign_in": sign_in})
    assert changed.is_success, changed.text

    refused = await http.post(REGISTER, json={"redirect_uris": [BACK]})

    assert refused.status_code == 404
    assert "registration_endpoint" not in (await http.get(path)).json()
    assert [
        one["status"]["kind"] for one in (await application.gateway.admin.get("/tenants/acme/clients")).json()["items"]
    ] == ["registered"]


async def test_metadata_that_cannot_be_served_is_refused(application: Application) -> None:
    """RFC 7591 §3.2.2: redirect URIs that run something or lead elsewhere, secrets of keys, other flows (IDN-2)."""
    http = application.gateway.http
    bodies: list[dict[str, Any]] = [
        {"redirect_uris": [BACK, "javascript:alert(1)"]},
        {"redirect_uris": [BACK] * 21},
        {"redirect_uris": BACK},
        {},
        {"redirect_uris": [BACK], "token_endpoint_auth_method": "private_key_jwt"},
        {"redirect_uris": [BACK], "grant_types": ["client_credentials"]},
        {"redirect_uris": [BACK], "grant_types": "all"},
        {"redirect_uris": [BACK], "response_types": ["token"]},
    ]
    answers = [await http.post(REGISTER, json=body) for body in bodies]  # an address may send ten
    assert [answer.status_code for answer in answers] == [400] * len(bodies)
    listed = await http.post(REGISTER, json=[])
    errors = [answer.json()["error"] for answer in (*answers, listed)]
    assert errors == ["invalid_redirect_uri"] * 4 + ["invalid_client_metadata"] * 5


async def test_floods_of_registrations_are_limited(servers: TestServers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: by address and tenant in their rate, and by tenant in their number; unused ones make room (ISO-6)."""
    monkeypatch.setattr(oauth_clients, "MAX_DYNAMIC_CLIENTS", 3)
    monkeypatch.setattr(endpoints, "_REGISTRATION_BURST", 6.0)
    monkeypatch.setattr(endpoints, "_REGISTRATION_RATE", 1e-6)  # no time of the test refills it
    with servers.database() as own:
        async with (
            recording_upstream() as server,
            running_gateway(
                own.app_url, servers.empty_redis(), egress_allow=[server.authority], trusted_proxies=["127.0.0.1"]
            ) as running,
        ):
            await running.create_tenant("acme")
            provider = LocalProvider(new_issuer(server))
            await add_provider(running, "acme", provider, sign_in={**provider.client, "registration": True})

            async def send(address: str) -> int:
                headers = {"x-forwarded-for": address}
                body = {"redirect_uris": [BACK], "client_name": "flood"}
                return (await running.http.post(REGISTER, json=body, headers=headers)).status_code

            made = [await send("192.0.2.1") for _ in range(4)]
            await execute(own.superuser_url, "update oauth_clients set created_at = now() - interval '1 hour'")
            made.append(await send("192.0.2.1"))
            stored = (await running.admin.get("/tenants/acme/clients")).json()["items"]
            flood = [await send("192.0.2.1") for _ in range(3)]
            monkeypatch.setattr(oauth_clients, "MAX_DYNAMIC_CLIENTS", 500)
            others = [await send(f"198.51.100.{number}") for number in range(60)]

    assert made == [201, 201, 201, 429, 201]
    assert len(stored) == 3
    assert flood[-1] == 429
    assert (others[0], others[-1]) == (201, 429)


async def test_made_up_clients_and_an_outage_end_no_sign_in(application: Application, database: TestDatabase) -> None:
    """Ours: a grant outlasts floods of client ids, and an outage of its client's host (TEN-3, IDN-2)."""
    found = await application.tokens()
    application.client_id = "https://127.0.0.1:9/client.json"  # a place that the gateway cannot read
    await execute(database.superuser_url, f"update grants set client = '{application.client_id}'")

    flood = [await application.authorize(client_id=f"https://127.0.0.1:9/{number}") for number in range(9)]
    assert [answer.status_code for answer in flood] == [400] * 8 + [429]
    assert (await application.authorize()).status_code == 400  # the fetches of known clients are not used up
    found = (await application.refresh(found["refresh_token"])).json()
    assert await application.status(found["access_token"]) == 200
    stolen = await application.refresh(found["refresh_token"], client_id="https://127.0.0.1:9/other")
    assert stolen.json()["error"] == "invalid_grant"

    sent = {"client_id": application.client_id, "token": found["refresh_token"]}
    assert (await application.gateway.http.post("/t/acme/oauth/revoke", data=sent)).status_code == 200
    assert await application.status(found["access_token"]) == 401


async def test_a_confidential_client_proves_its_secret_once_and_in_one_way(application: Application) -> None:
    """RFC 6749 §2.3: without the secret, or with another client's, a code brings nothing (IDN-2)."""
    mine = await register(application.gateway, name="Mine", confidential=True)
    other = await register(application.gateway, name="Other", confidential=True)
    public, application.client_id = application.client_id, mine["id"]
    code = await application.code()

    def basic(name: str, secret: str) -> dict[str, str]:
        return {"authorization": f"Basic {base64.b64encode(f'{name}:{secret}'.encode()).decode()}"}

    standard = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER, "redirect_uri": BACK}
    attempts: list[tuple[dict[str, str], dict[str, str], int, str]] = [
        ({"client_id": mine["id"]}, {}, 401, "invalid_client"),
        ({"client_id": mine["id"], "client_secret": other["secret"]}, {}, 401, "invalid_client"),
        ({"client_id": mine["id"], "client_secret": ""}, {}, 401, "invalid_client"),
        ({}, basic(mine["id"], other["secret"]), 401, "invalid_client"),
        ({"client_secret": mine["secret"]}, basic(mine["id"], mine["secret"]), 400, "invalid_request"),
        ({"client_id": public}, basic(mine["id"], mine["secret"]), 400, "invalid_request"),
        ({}, {"authorization": "Bearer x"}, 400, "invalid_request"),
        ({}, {"authorization": "Basic %%"}, 400, "invalid_request"),
        ({}, {}, 400, "invalid_client"),
    ]
    for fields, headers, status, error in attempts:
        answer = await application.gateway.http.post(
            "/t/acme/oauth/token", data={**standard, **fields}, headers=headers
        )
        assert (answer.status_code, answer.json()["error"]) == (status, error), (fields, headers)
        assert mine["secret"] not in answer.text
    right = basic(mine["id"], mine["secret"])
    assert (await application.gateway.http.post("/t/acme/oauth/token", data=standard, headers=right)).is_success

    rotated = (await application.gateway.admin.post(f"/tenants/acme/clients/{mine['id']}/rotate")).json()["secret"]
    place = f"/tenants/acme/clients/{mine['id']}"
    whole = {"name": "Renamed", "redirect_uris": [BACK]}
    assert (await application.gateway.admin.put(place, json={**whole, "confidential": False})).status_code == 400
    replaced = await application.gateway.admin.put(place, json=whole)
    assert (replaced.json()["confidential"], "secret" in replaced.json()) == (True, False)
    code = await application.code()
    assert (await application.redeem(code, client_secret=mine["secret"])).status_code == 401
    assert (await application.redeem(code, client_secret=rotated)).status_code == 200


async def test_an_error_repeats_nothing_of_the_request(application: Application) -> None:
    """Ours: descriptions are short, ASCII and without quotes, so no log or page is written by a request (IDN-2)."""
    evil = '"><script>alert(1)</script>\r\nSet-Cookie: x=1' + "\N{RIGHT-TO-LEFT OVERRIDE}" * 9 + "y" * 500
    for fields in ({"grant_type": evil}, {"grant_type": "refresh_token", "refresh_token": evil}, {evil: evil}):
        answer = await application.token(**fields)
        assert answer.status_code == 400
        description = answer.json().get("error_description", "")
        assert len(description) <= 300
        assert description.isascii()
        assert '"' not in description
        assert "\r" not in description
        assert answer.headers["cache-control"] == "no-store"
    too_many = "&".join(f"a{number}=1" for number in range(40))
    headers = {"content-type": "application/x-www-form-urlencoded"}
    for body, kind in ((too_many, headers), ("client_id=a&client_id=b", headers), ("{}", {})):
        answer = await application.gateway.http.post("/t/acme/oauth/token", content=body, headers=kind)
        assert 400 <= answer.status_code < 500, answer.text


async def test_guesses_at_the_token_endpoint_count_as_failures(servers: TestServers) -> None:
    """Ours: guessed codes, tokens, secrets and proofs slow an address down like guessed keys (ISO-6)."""
    with servers.database() as own:
        async with (
            recording_upstream() as server,
            running_gateway(
                own.app_url, servers.empty_redis(), auth_failure_rate=0.1, egress_allow=[server.authority]
            ) as running,
        ):
            await running.create_tenant("acme")
            await add_provider(running, "acme", LocalProvider(new_issuer(server)))
            client = await register(running)
            for headers in ({}, {"dpop": "no proof"}):
                sent = {"client_id": client["id"], "grant_type": "refresh_token", "refresh_token": "x"}
                refused = await running.http.post("/t/acme/oauth/token", data=sent, headers=headers)
                assert refused.status_code == 400
            refused = await running.rpc("acme", "wrong", "tools/list")

    assert refused.status_code == 429
