"""Opaque tokens and revoked JWTs: what issuers answer, and what floods, hung issuers and misplaced keys do."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from gateway.identity import introspection
from tests.support.documents import pets
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.issuer import INTROSPECTION_SECRET, LocalIssuer, OpaqueTokens, add_opaque, new_issuer
from tests.support.servers import TestDatabase
from tests.support.stand import common_stand, database, gateway, own_stand, redis_url, stand, upstream
from tests.support.upstream import RecordingUpstream, recording_upstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

CALL: dict[str, Any] = {"name": "list_pets", "arguments": {}}
INVENTED_PER_S = 5
"""Rate of invented tokens of one network about which an issuer is asked, after a burst of 50."""


@pytest.fixture
async def tokens(gateway: RunningGateway, upstream: RecordingUpstream) -> OpaqueTokens:
    """The tokens of an issuer that the tenant `acme` does not have yet."""
    await gateway.create_tenant("acme")
    return OpaqueTokens(new_issuer(upstream))


def _audience(gateway: RunningGateway, slug: str = "acme") -> str:
    return f"{gateway.url}/t/{slug}/mcp"


async def _status(gateway: RunningGateway, token: str, slug: str = "acme") -> int:
    return (await gateway.rpc(slug, token, "tools/list")).status_code


async def test_a_person_calls_with_an_opaque_token(
    gateway: RunningGateway, tokens: OpaqueTokens, upstream: RecordingUpstream
) -> None:
    """RFC 7662: the issuer is asked once for several calls; token and secret go nowhere else (TEN-2)."""
    made = await add_opaque(gateway, "acme", tokens)
    await gateway.import_document("acme", pets(upstream.url))
    token = tokens.add("opaque-token-of-ada", _audience(gateway), scope="tools", token_type="Bearer")

    answers = [await gateway.rpc("acme", token, "tools/call", CALL) for _ in range(3)]

    assert all("result" in answer.json() for answer in answers), answers[0].text
    assert tokens.asked == [token]
    assert [seen.target for seen in upstream.seen if token in repr(seen)] == ["/introspect"]
    entries = await gateway.admin.get("/tenants/acme/audit")
    called = await gateway.admin.get("/tenants/acme/audit?tool=list_pets")
    assert {one["principal"] for one in called.json()["items"]} == {"user:corp:ada"}
    shown = await gateway.admin.get("/tenants/acme/issuers/corp")
    assert shown.json()["introspection"] == {
        "client_id": "gateway",
        "client_secret_reference": None,
        "url": None,
        "client_auth": "basic",
        "tokens": "opaque",
        "cache_s": 30,
    }
    same = await gateway.admin.put("/tenants/acme/issuers/corp", json=shown.json())
    assert (same.status_code, same.headers["etag"]) == (200, shown.headers["etag"]), same.text
    assert shown.json()["status"]["introspection_url"] == f"{upstream.url}/introspect"
    assert not [text for text in (str(made), shown.text, entries.text) if INTROSPECTION_SECRET in text]


State = Callable[[LocalIssuer, str], dict[str, Any] | bytes]


def _with(**more: object) -> State:
    return lambda issuer, to: {"active": True, **issuer.claims(to, **more)}


REFUSED: dict[str, State] = {
    "unknown": lambda _issuer, _to: {"active": False},
    "another issuer": _with(iss="https://evil.example"),
    "issuers": lambda issuer, to: {"active": True, **issuer.claims(to), "iss": [issuer.url]},
    "no audience": _with(aud=None),
    "another audience": _with(aud="https://other.example"),
    "no end": _with(exp=None),
    "ended": _with(exp=int(time.time()) - 120),
    "an endless end": lambda issuer, to: json.dumps({"active": True, **issuer.claims(to), "exp": 10**400}).encode(),
    "no begin": _with(iat=None),
    "not yet": _with(nbf=int(time.time()) + 3600),
    "no subject": _with(sub=None),
    "a subject that is none": _with(sub={"name": "ada"}),
    "bound to a key": _with(cnf={"jkt": "0" * 43}),
    "bound to a certificate": _with(cnf={"x5t#S256": "0" * 43}),
    "a refresh token": _with(token_type="refresh_token"),
    "a refresh token of another server": _with(typ="Refresh"),
    "an ID token": _with(typ="ID"),
    "a refresh token by its use": _with(token_use="refresh_token"),
}
BROKEN: dict[str, bytes] = {
    "a text": b'{"active": "true"}',
    "a number": b'{"active": 1}',
    "nothing": b"{}",
    "no object": b"[true]",
    "no JSON": b"true or false",
    "nested": b'{"active": true, "x": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "oversized": b'{"active": true, "x": "' + b"x" * 100_000 + b'"}',
}


async def test_a_token_that_the_issuer_does_not_vouch_for_is_refused(
    gateway: RunningGateway, tokens: OpaqueTokens
) -> None:
    """RFC 7662: states are judged as claims of JWTs are; a broken answer accepts nothing, and is no refusal (TEN-2)."""
    await add_opaque(gateway, "acme", tokens)
    for number, state in enumerate(REFUSED.values()):
        tokens.states[f"refused-{number}"] = state(tokens.issuer, _audience(gateway))
    for number, body in enumerate(BROKEN.values()):
        tokens.states[f"broken-{number}"] = body

    refused = {name: await _status(gateway, f"refused-{number}") for number, name in enumerate(REFUSED)}
    broken = {name: await _status(gateway, f"broken-{number}") for number, name in enumerate(BROKEN)}
    tokens.is_broken = True
    unreachable = await gateway.rpc("acme", tokens.add("good-token", _audience(gateway)), "tools/list")

    assert refused == dict.fromkeys(REFUSED, 401)
    assert broken == dict.fromkeys(BROKEN, 503)
    assert (unreachable.status_code, unreachable.headers["retry-after"]) == (503, "5")
    tokens.is_broken = False
    assert await _status(gateway, "good-token") == 200


async def test_no_key_and_no_forged_jwt_goes_to_an_issuer(gateway: RunningGateway, tokens: OpaqueTokens) -> None:
    """Ours: keys, also mistyped ones, and tokens that fail verification are not sent to the tenant's issuer (TEN-4)."""
    await add_opaque(gateway, "acme", tokens, tokens="all")
    key = await gateway.create_key("acme", "mcp")
    forged = new_issuer(RecordingUpstream(port=tokens.issuer.upstream.port))
    misplaced = [
        key,
        key[:-1] + ("0" if key[-1] != "0" else "1"),
        key[2:],
        key.upper(),
        f"x{key}",
        gateway.admin.headers["authorization"].partition(" ")[2],
        forged.token(_audience(gateway)),
        "a.b.c",
        "short",
        "with space",
        "x" * 5000,
        'quote"d-token',
    ]

    statuses = [await _status(gateway, text) for text in misplaced]

    assert statuses == [200, *[401] * 4, 404, *[401] * 6]
    assert tokens.asked == []


async def test_a_revoked_token_ends_within_the_cache_time_at_every_replica(
    gateway: RunningGateway, tokens: OpaqueTokens, database: TestDatabase, redis_url: str
) -> None:
    """RFC 7662 section 4: an answer counts for `cache_s`; a JWT that is active no more ends, too (TEN-2)."""
    await add_opaque(gateway, "acme", tokens, tokens="all", cache_s=1)
    opaque = tokens.add("revoked-soon", _audience(gateway))
    jwt = tokens.issuer.token(_audience(gateway))
    unknown = tokens.issuer.token(_audience(gateway), sub="bob")
    tokens.add(jwt, _audience(gateway))
    allowed = [tokens.issuer.upstream.authority]
    async with running_gateway(database.app_url, redis_url, egress_allow=allowed, public_url=gateway.url) as other:
        before = [await _status(each, token) for each in (gateway, other) for token in (opaque, jwt, unknown)]
        tokens.states.clear()
        began = time.monotonic()
        for each in (gateway, other):
            for token in (opaque, jwt):
                while await _status(each, token) != 401:
                    assert time.monotonic() < began + 15
                    await anyio.sleep(0.1)

    assert before == [200, 200, 401] * 2
    assert tokens.asked.count(jwt) >= 4


async def test_a_flood_of_invented_tokens_delays_no_other_caller(gateway: RunningGateway, tokens: OpaqueTokens) -> None:
    """Ours: the issuer is asked about few invented tokens; known tokens and other tenants are served (ISO-2, ISO-6)."""
    await add_opaque(gateway, "acme", tokens, cache_s=1)
    known = tokens.add("token-of-ada", _audience(gateway))
    async with recording_upstream() as server:
        theirs = OpaqueTokens(new_issuer(server))
        await gateway.create_tenant("globex")
        await gateway.admin.put("/tenants/globex/egress", json={"allow": [server.authority]})
        await add_opaque(gateway, "globex", theirs)
        fresh = theirs.add("token-of-bob", _audience(gateway, "globex"))
        assert await _status(gateway, known) == 200

        began = time.monotonic()
        statuses = await asyncio.gather(*(_status(gateway, f"invented-{number}") for number in range(120)))
        took_s = time.monotonic() - began
        await anyio.sleep(1.1)
        served = await asyncio.gather(_status(gateway, known), _status(gateway, fresh, "globex"))

    assert list(served) == [200, 200]
    assert set(statuses) <= {401, 429, 503}
    asked = [token for token in tokens.asked if token != known]
    assert len(asked) < 100 + INVENTED_PER_S * took_s  # a slow machine gives the bucket time to fill again
    assert 429 in statuses or took_s > 10
    assert tokens.asked.count(known) == 2


async def test_a_hung_issuer_delays_its_own_tokens_only(
    gateway: RunningGateway, tokens: OpaqueTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: requests to an issuer end in time with 503; keys and other tenants go on meanwhile (ISO-2)."""
    monkeypatch.setattr(introspection, "INTROSPECTION_S", 0.5)
    await add_opaque(gateway, "acme", tokens)
    key = await gateway.create_key("acme", "mcp")
    async with recording_upstream() as server:
        theirs = OpaqueTokens(new_issuer(server))
        await gateway.create_tenant("globex")
        await gateway.admin.put("/tenants/globex/egress", json={"allow": [server.authority]})
        await add_opaque(gateway, "globex", theirs)
        fresh = theirs.add("token-of-bob", _audience(gateway, "globex"))
        tokens.issuer.upstream.arrived.clear()
        tokens.issuer.upstream.gate = asyncio.Event()
        hung = [asyncio.create_task(_status(gateway, f"hung-token-{number}")) for number in range(6)]
        await asyncio.wait_for(tokens.issuer.upstream.arrived.wait(), 20)
        async with asyncio.timeout(5):
            served = [await _status(gateway, key), await _status(gateway, fresh, "globex")]
            statuses = await asyncio.gather(*hung)
        tokens.issuer.upstream.gate.set()

    assert served == [200, 200]
    assert statuses == [503] * 6


async def test_a_client_without_introspection_rights_is_refused_when_it_is_stored(
    gateway: RunningGateway, tokens: OpaqueTokens, upstream: RecordingUpstream
) -> None:
    """Ours: a wrong secret or endpoint is an error of the change; a stored secret is sent nowhere else (TEN-4)."""
    path, url = "/tenants/acme/issuers", upstream.url

    async def create(name: str = "corp", **more: object) -> tuple[int, str]:
        client = {name: value for name, value in {**tokens.client, **more}.items() if value is not None}
        body: dict[str, Any] = {"name": name, "url": url, "rules": [{}], "introspection": client}
        answer = await gateway.admin.post(path, json=body)
        return answer.status_code, answer.text

    faults: list[tuple[dict[str, Any], str]] = [
        ({"client_secret": "wrong"}, "invalid_client"),
        ({"client_secret": None}, "/introspection/client_secret"),
        ({"url": f"{url}/other"}, "no state"),
        ({"url": "http://login.example/introspect"}, "https"),
        ({"cache_s": 61}, "cache_s"),
        ({"tokens": "none"}, "tokens"),
    ]
    for more, reason in faults:
        status, text = await create(**more)
        assert (status, reason in text) == (400, True), text
    assert (await create(client_auth="post"))[0] == 201
    second = await create("second")
    async with recording_upstream() as server:
        await gateway.admin.put("/tenants/acme/egress", json={"allow": [server.authority]})
        moved = {"client_id": "gateway", "url": f"{server.url}/introspect"}
        elsewhere = await gateway.admin.patch(f"{path}/corp", json={"introspection": moved})
        liar = OpaqueTokens(new_issuer(server))
        respond = server.respond
        server.respond = lambda seen: b'{"active":true}' if seen.target == "/introspect" else server.body
        asked = {**liar.client, "tokens": "jwt"}
        body: dict[str, Any] = {"name": "liar", "url": server.url, "rules": [{}], "introspection": asked}
        lies = await gateway.admin.post(path, json=body)
        server.respond = respond
        asked["tokens"] = "opaque"
        two = await gateway.admin.post(path, json=body)

    assert second[0] == 409
    assert (elsewhere.status_code, "client_secret" in elsewhere.text) == (422, True)
    assert (lies.status_code, "random token" in lies.text) == (400, True)
    assert (two.status_code, "opaque tokens already" in two.text) == (400, True)
    kept = {"client_id": "gateway", "cache_s": 5, "client_auth": "post"}
    changed = await gateway.admin.patch(f"{path}/corp", json={"introspection": kept})
    assert changed.json()["introspection"]["cache_s"] == 5
    assert await _status(gateway, tokens.add("token-of-ada", _audience(gateway))) == 200
    off = await gateway.admin.patch(f"{path}/corp", json={"introspection": None})
    assert off.json()["introspection"] is None
    assert await _status(gateway, tokens.add("token-of-bob", _audience(gateway))) == 401


async def test_an_issuer_without_keys_has_opaque_tokens_only(
    gateway: RunningGateway, tokens: OpaqueTokens, upstream: RecordingUpstream
) -> None:
    """Ours: an issuer that publishes no keys can be asked about its tokens; JWTs in its name are refused (TEN-2)."""
    tokens.issuer.publish(introspection_endpoint=f"{upstream.url}/introspect", jwks_uri=None)
    made = await add_opaque(gateway, "acme", tokens)

    assert made["jwks_url"] == ""
    assert await _status(gateway, tokens.add("token-of-ada", _audience(gateway))) == 200
    assert await _status(gateway, tokens.issuer.token(_audience(gateway))) in {401, 503}
