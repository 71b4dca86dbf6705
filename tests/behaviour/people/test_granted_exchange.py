"""Token exchange for people whose access token the gateway issued: the provider's kept token is exchanged."""

import base64
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import orjson
import pytest

from tests.support.authorization import Application, register
from tests.support.gateway import RunningGateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.primitives import add, tool
from tests.support.servers import TestDatabase, dump, execute
from tests.support.serving import http_client
from tests.support.stand import Stand
from tests.support.upstream import Seen

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


@dataclass(slots=True)
class TokenEndpointOfPeople:
    """The provider: codes and refresh tokens bring a token of the person, an exchange brings one for the API."""

    provider: LocalProvider
    life_s: int = 3600
    exchanged: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def respond(self, seen: Seen) -> bytes:
        """Return metadata and keys, or tokens."""
        form = {name: values[0] for name, values in parse_qs(seen.body.decode()).items()}
        if form.get("grant_type") != EXCHANGE:
            found = orjson.loads(self.provider.issuer.upstream.body)
            person = self.provider.claims.get("sub", "ada")
            number = form.get("grant_type", "")
            more = {
                "access_token": f"{person}.{number}",
                "refresh_token": f"refresh.{person}",
                "expires_in": self.life_s,
            }
            return orjson.dumps(found | more)
        assert base64.b64decode((seen.header("authorization") or "").removeprefix("Basic ")) == b"gw:s3cret-client"
        self.exchanged.append(form)
        value = f"for-the-api.{form['subject_token']}"
        return orjson.dumps({"access_token": value, "token_type": "Bearer", "expires_in": 300})


@dataclass(slots=True)
class PlaceOfPeople:
    """A tenant with an exchanging tool, and people who sign in with a browser each."""

    gateway: RunningGateway
    stand: Stand
    endpoint: TokenEndpointOfPeople
    client_id: str

    async def tokens(self, person: str) -> dict[str, Any]:
        """Tokens of the gateway for a person."""
        self.endpoint.provider.claims["sub"] = person
        async with http_client(timeout=30) as http:
            return await Application(self.gateway, self.endpoint.provider, self.client_id, http).tokens()

    async def call(self, token: str) -> dict[str, Any]:
        """The result of a call."""
        answer = await self.gateway.rpc("acme", token, "tools/call", {"name": "orders", "arguments": {}})
        result: dict[str, Any] = answer.json()["result"]
        return result


@pytest.fixture
async def place(gateway: RunningGateway, stand: Stand) -> PlaceOfPeople:
    """The tenant `acme`."""
    api, server = stand.upstreams
    await gateway.create_tenant("acme")
    provider = LocalProvider(new_issuer(server))
    endpoint = TokenEndpointOfPeople(provider)
    provider.publish()
    server.respond = endpoint.respond
    await add_provider(gateway, "acme", provider)
    client = {"issuer": "corp", "client_id": "gw", "value": "s3cret-client", "audience": "https://orders.internal"}
    await add(
        gateway,
        "acme",
        "credentials",
        {"name": "orders", "place": "bearer", "origins": [api.url], "kind": "exchange", **client},
    )
    handler = {"kind": "http", "method": "GET", "url": f"{api.url}/orders", "credential": "orders"}
    await add(gateway, "acme", "tools", tool("orders", handler))
    return PlaceOfPeople(gateway, stand, endpoint, (await register(gateway))["id"])


async def test_each_person_arrives_at_the_upstream_by_the_providers_own_token(place: PlaceOfPeople) -> None:
    """Ours: neither the gateway's token nor the provider's reaches the API, only the exchanged one (TEN-4, IDN-2)."""
    ada, bob = await place.tokens("ada"), await place.tokens("bob")
    for held in (ada, bob, ada):
        assert not (await place.call(held["access_token"])).get("isError")

    api, server = place.stand.upstreams
    arrived = [seen.header("authorization") for seen in api.seen]
    expected = [f"Bearer for-the-api.{person}.authorization_code" for person in ("ada", "bob", "ada")]
    assert arrived == expected
    assert [form["subject_token"] for form in place.endpoint.exchanged] == [
        "ada.authorization_code",
        "bob.authorization_code",
    ]
    for held in (ada, bob):
        assert not [seen for seen in (*api.seen, *server.seen) if held["access_token"] in repr(seen)]


async def test_an_ended_token_of_the_provider_is_renewed_unless_the_grant_ended(
    place: PlaceOfPeople, database: TestDatabase
) -> None:
    """Ours: the refresh token of the provider renews it; nothing of it is stored in the clear (TEN-4, IDN-2)."""
    place.endpoint.life_s = 1
    held = await place.tokens("ada")
    await execute(database.superuser_url, "update sign_ins set lease = null")
    place.endpoint.life_s = 3600
    assert not (await place.call(held["access_token"])).get("isError")
    assert place.stand.upstreams[0].seen[-1].header("authorization") == "Bearer for-the-api.ada.refresh_token"
    assert "ada.refresh_token" not in await dump(database.superuser_url)

    other = await place.tokens("ada")
    await execute(database.superuser_url, "update grants set ends_at = now() - interval '1 second'")
    result = await place.call(other["access_token"])
    assert result["isError"]
    assert "grant of the caller has ended" in result["content"][0]["text"]
