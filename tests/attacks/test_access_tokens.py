"""Attacks with access tokens: forged, confused, foreign, too long, bound elsewhere, or with keys that cost too much."""

import asyncio
import base64
import hashlib
import hmac
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt
import orjson
import pytest
from cryptography.hazmat.primitives import serialization

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.issuers import TenantIssuers
from gateway.identity.access_tokens import TokenRejected, read_key, verify
from gateway.upstream.auth.key_sets import read_keys
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.issuer import LocalIssuer, add_issuer, issuer_of, new_issuer, new_keys, public_jwk
from tests.support.servers import TestDatabase
from tests.support.stand import common_stand, database, gateway, own_stand, redis_url, stand, upstream
from tests.support.upstream import RecordingUpstream, recording_upstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]


@pytest.fixture
async def issuer(gateway: RunningGateway, upstream: RecordingUpstream) -> LocalIssuer:
    """An issuer that two tenants accept, one of them under another name."""
    issuer = new_issuer(upstream, {**new_keys(), "second rsa": new_keys()["rsa"]})
    for slug, name in (("acme", "corp"), ("globex", "login")):
        await gateway.create_tenant(slug)
        await add_issuer(gateway, slug, issuer, name=name)
    return issuer


def _audience(gateway: RunningGateway, slug: str = "acme") -> str:
    return f"{gateway.url}/t/{slug}/mcp"


async def _status(gateway: RunningGateway, token: str, slug: str = "acme") -> int:
    return (await gateway.rpc(slug, token, "tools/list")).status_code


AUDIENCE = "https://gateway.example/t/acme/mcp"


@dataclass(frozen=True, slots=True)
class PublishedKeys:
    """The keys that an issuer publishes."""

    issuer: LocalIssuer

    async def find(
        self, tenant: TenantId, url: str, kid: str | None, *, state: str = ""
    ) -> Sequence[Mapping[str, Any]]:
        """The keys with this id, or all."""
        return [key for key in read_keys(self.issuer.upstream.body) if kid is None or key.get("kid") == kid]


def _encoded(value: object) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).decode().rstrip("=")


def _public_pem(issuer: LocalIssuer) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return issuer.keys["rsa"].public_key().public_bytes(serialization.Encoding.PEM, form)


def _confused(issuer: LocalIssuer, audience: str) -> str:
    """A token whose HMAC secret is the public key."""
    signed = f"{_encoded({'alg': 'HS256', 'typ': 'JWT', 'kid': 'rsa'})}.{_encoded(issuer.claims(audience))}"
    mac = hmac.digest(_public_pem(issuer), signed.encode(), hashlib.sha256)
    return f"{signed}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def _own_key(issuer: LocalIssuer, audience: str, **header: object) -> str:
    """A token signed with a key of the attacker, which the header brings along or names."""
    key = new_keys()["rsa"]
    headers = {"kid": "rsa", **header, **({"jwk": public_jwk(key, "rsa")} if "jwk" in header else {})}
    return jwt.encode(issuer.claims(audience), key, algorithm="RS256", headers=headers)


def _cut(token: str, part: int, value: str) -> str:
    parts = token.split(".")
    parts[part] = value
    return ".".join(parts)


FORGED: dict[str, Callable[[LocalIssuer, str], str]] = {
    "unsigned": lambda issuer, to: f"{_encoded({'alg': 'none'})}.{_encoded(issuer.claims(to))}.",
    "unsigned with a key id": lambda issuer, to: (
        f"{_encoded({'alg': 'none', 'kid': 'rsa'})}.{_encoded(issuer.claims(to))}."
    ),
    "public key as a secret": _confused,
    "own key": _own_key,
    "own key in the header": lambda issuer, to: _own_key(issuer, to, jwk=True),
    "own key by URL": lambda issuer, to: _own_key(issuer, to, jku="https://evil.example/keys"),
    "key id as a path": lambda issuer, to: _own_key(issuer, to, kid="../../etc/passwd"),
    "no key id, two keys": lambda issuer, to: jwt.encode(issuer.claims(to), issuer.keys["rsa"], algorithm="RS256"),
    "no signature": lambda issuer, to: _cut(issuer.token(to), 2, ""),
    "other claims": lambda issuer, to: _cut(issuer.token(to), 1, _encoded(issuer.claims(to, sub="root"))),
    "nested": lambda issuer, to: _cut(issuer.token(to), 1, base64.urlsafe_b64encode(b"[" * 3000).decode()),
    "no JSON": lambda issuer, to: _cut(issuer.token(to), 0, "e30"),
    "elliptic key for RSA": lambda issuer, to: _cut(
        issuer.token(to, kid="ec"), 0, _encoded({"alg": "RS256", "kid": "ec"})
    ),
    "critical header": lambda issuer, to: jwt.encode(
        issuer.claims(to), issuer.keys["rsa"], algorithm="RS256", headers={"kid": "rsa", "crit": ["exp"], "exp": 1}
    ),
    "another issuer": lambda issuer, to: issuer.token(to, iss="https://evil.example"),
    "issuer with a slash": lambda issuer, to: issuer.token(to, iss=issuer.url + "/"),
    "no issuer": lambda issuer, to: issuer.token(to, iss=None),
    "issuers": lambda issuer, to: jwt.api_jws.encode(
        orjson.dumps(issuer.claims(to, iss=[issuer.url])), issuer.keys["rsa"], algorithm="RS256", headers={"kid": "rsa"}
    ),
    "expired": lambda issuer, to: issuer.token(to, exp=int(time.time()) - 120),
    "not yet": lambda issuer, to: issuer.token(to, nbf=int(time.time()) + 3600),
    "issued later": lambda issuer, to: issuer.token(to, iat=int(time.time()) + 3600),
    "no end": lambda issuer, to: issuer.token(to, exp=None),
    "no begin": lambda issuer, to: issuer.token(to, iat=None),
    "too old for its lifetime": lambda issuer, to: issuer.token(to, iat=int(time.time()) - 7200),
    "no audience": lambda issuer, to: issuer.token(None),
    "the origin as audience": lambda issuer, to: issuer.token(to.removesuffix("/t/acme/mcp")),
    "audience with a suffix": lambda issuer, to: issuer.token(to + "/x"),
    "audience as a prefix": lambda issuer, to: issuer.token(to[:-1]),
    "no subject": lambda issuer, to: issuer.token(to, sub=None),
    "empty subject": lambda issuer, to: issuer.token(to, sub=""),
    "long subject": lambda issuer, to: issuer.token(to, sub="a" * 201),
    "subject with a line break": lambda issuer, to: issuer.token(to, sub="ada\nuser:root"),
    "subject with a blank": lambda issuer, to: issuer.token(to, sub="ada "),
    "numeric subject": lambda issuer, to: issuer.token(to, sub=7),
    "ID token by its type": lambda issuer, to: jwt.encode(
        issuer.claims(to), issuer.keys["rsa"], algorithm="RS256", headers={"kid": "rsa", "typ": "id_token+jwt"}
    ),
    "bound to a key": lambda issuer, to: issuer.token(to, cnf={"jkt": "0" * 43}),
}


async def test_a_token_that_is_none_is_refused_like_a_wrong_key(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: no forged, altered, foreign or ended token is accepted, and the response does not show why (TEN-2)."""
    wrong = await gateway.rpc("acme", "wrong", "tools/list")
    for kind, forge in FORGED.items():
        forged = await gateway.rpc("acme", forge(issuer, _audience(gateway)), "tools/list")

        assert forged.status_code == 401, kind
        assert forged.json()["error"]["message"] == wrong.json()["error"]["message"], kind
        assert forged.headers["www-authenticate"] == wrong.headers["www-authenticate"], kind
    assert (await gateway.admin.get("/tenants/acme/people")).json()["items"] == []
    assert await _status(gateway, issuer.token(_audience(gateway))) == 200


REASONS = {
    "algorithm": {"unsigned", "unsigned with a key id", "public key as a secret", "no JSON"},
    "audience": {"the origin as audience", "audience with a suffix", "audience as a prefix"},
    "claims": {"no end", "no begin", "no audience", "no subject"},
    "form": {"nested", "critical header", "numeric subject"},
    "issuer": {"another issuer", "issuer with a slash", "no issuer", "issuers"},
    "key": {"key id as a path", "no key id, two keys", "elliptic key for RSA"},
    "lifetime": {"too old for its lifetime"},
    "signature": {"own key", "own key in the header", "own key by URL", "no signature", "other claims"},
    "subject": {"empty subject", "long subject", "subject with a line break", "subject with a blank"},
    "time": {"expired", "not yet", "issued later"},
    "type": {"ID token by its type"},
}
"""The forgeries by the reason in the trail; the one that is bound to a key is refused after its verification."""


async def test_each_forgery_is_refused_for_its_own_fault(upstream: RecordingUpstream) -> None:
    """Ours: the trail's reason is that of the forgery, so each check refuses by itself (TEN-2, SAF-4)."""
    issuer = new_issuer(upstream, {**new_keys(), "second rsa": new_keys()["rsa"]})
    corp = issuer_of("corp", url=issuer.url, algorithms=("RS256",))
    found = TenantIssuers(tenant=TenantId("ten_acme"), issuers=(corp,))
    seen: dict[str, set[str]] = {}
    for kind, forge in FORGED.items():
        try:
            await verify(forge(issuer, AUDIENCE), found, PublishedKeys(issuer), audience=AUDIENCE)
        except TokenRejected as rejected:
            seen.setdefault(rejected.reason, set()).add(kind)

    assert seen == REASONS


async def test_a_token_for_one_tenant_is_none_at_another(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: two tenants with the same issuer do not accept each other's tokens, also when they are cached (ISO-1)."""
    mine, theirs = issuer.token(_audience(gateway)), issuer.token(_audience(gateway, "globex"))
    statuses = [
        [await _status(gateway, token, slug) for slug in ("acme", "globex", "acme")] for token in (mine, theirs)
    ]
    elsewhere = [
        await gateway.http.get(path, headers={"authorization": f"Bearer {mine}"})
        for path in ("/admin/v1/tenants/acme/tools", "/metrics", "/t/acme/sse")
    ]

    assert statuses == [[200, 401, 200], [401, 200, 401]]
    assert [answer.status_code for answer in elsewhere] == [401, 401, 401]


async def test_the_old_transport_takes_tokens_for_itself_alone(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """MCP: `/sse` is a resource of its own; each message needs a token for it, of the person (TEN-1, TEN-2)."""
    url, ping = f"{gateway.url}/t/acme/sse", {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    own, bob, other = issuer.token(url), issuer.token(url, sub="bob"), issuer.token(_audience(gateway))

    async def post(path: str, token: str) -> int:
        headers = {"authorization": f"Bearer {token}"}
        return (await gateway.http.post(path, json=ping, headers=headers)).status_code

    async with gateway.http.stream("GET", "/t/acme/sse", headers={"authorization": f"Bearer {own}"}) as stream:
        events = (line.removeprefix("data: ") async for line in stream.aiter_lines() if line.startswith("data: "))
        path = await anext(events)
        statuses = [await post(path, token) for token in ("wrong", other, bob, own)]
        answered = orjson.loads(await anext(events))
    metadata = await gateway.http.get("/.well-known/oauth-protected-resource/t/acme/sse")

    assert (stream.status_code, statuses) == (200, [401, 401, 404, 202])
    assert answered == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert metadata.json()["resource"] == url
    entries = (await gateway.admin.get("/tenants/acme/people")).json()["items"]
    assert {entry["subject"] for entry in entries} == {"corp:ada", "corp:bob"}


async def test_an_issuer_that_hangs_delays_its_own_tenant_only(
    gateway: RunningGateway, issuer: LocalIssuer, upstream: RecordingUpstream, database: TestDatabase, redis_url: str
) -> None:
    """Ours: while one tenant's issuer sends no keys, people of another and keys of this one are served (ISO-2)."""
    key = await gateway.create_key("acme", "mcp")
    async with (
        recording_upstream() as other,
        running_gateway(database.app_url, redis_url, egress_allow=[upstream.authority, other.authority]) as replica,
    ):
        theirs = new_issuer(other)
        await gateway.create_tenant("initech")
        await gateway.admin.put("/tenants/initech/egress", json={"allow": [other.authority]})
        await add_issuer(gateway, "initech", theirs)
        upstream.arrived.clear()
        upstream.gate = asyncio.Event()
        tokens = [issuer.token(_audience(replica), sub=f"person-{number}") for number in range(12)]
        hung = [asyncio.create_task(_status(replica, token)) for token in tokens]
        try:
            await asyncio.wait_for(upstream.arrived.wait(), 20)
            async with asyncio.timeout(20):
                served = await _status(replica, theirs.token(_audience(replica, "initech")), "initech")
                keyed = await _status(replica, key)
        finally:
            upstream.gate.set()
        statuses = await asyncio.gather(*hung)

    assert (served, keyed) == (200, 200)
    assert set(statuses) == {200}


async def test_a_person_takes_over_nothing_of_a_key(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: whatever subject an issuer signs, it is none of a key's; a person's row is no key (ISO-1)."""
    made = await gateway.admin.post("/tenants/acme/keys", json={"name": "agent", "scopes": ["mcp"]})
    key = made.json()["id"]
    assert await _status(gateway, issuer.token(_audience(gateway), sub=key)) == 200
    [person] = (await gateway.admin.get("/tenants/acme/people")).json()["items"]

    path = f"/tenants/acme/keys/{person['id']}"
    answers = [
        await gateway.admin.get(path),
        await gateway.admin.post(f"{path}/rotate"),
        await gateway.admin.patch(path, json={"name": "mine"}),
        await gateway.admin.post(f"/tenants/acme/people/{key}/deny"),
    ]

    assert person["subject"] == f"corp:{key}" != made.json()["subject"]
    assert [answer.status_code for answer in answers] == [404, 404, 404, 404]


async def test_a_refused_token_is_explained_in_the_trail(database: TestDatabase, redis_url: str) -> None:
    """Ours: the tenant's administrator reads why sign-in fails; the client does not (SAF-4)."""
    evil = "https://evil.example"  # of no issuer of the tenant: nothing to explain
    wrong: list[dict[str, Any]] = [
        {"iss": evil},
        {"exp": 1},
        {"aud": "https://other.example"},
        {"cnf": {}},
        {"cnf": {}},
    ]
    async with (
        recording_upstream() as upstream,
        running_gateway(database.app_url, redis_url, egress_allow=[upstream.authority]) as gateway,
    ):
        await gateway.create_tenant("acme")
        issuer = new_issuer(upstream)
        await add_issuer(gateway, "acme", issuer)
        for claims in wrong:
            assert await _status(gateway, issuer.token(**{"audience": _audience(gateway), **claims})) == 401
        entries = (await gateway.admin.get("/tenants/acme/audit")).json()["items"]

    refused = Counter(
        entry["outcome"].rpartition(".")[2]
        for entry in entries
        if (entry["principal"], entry["action"]) == ("issuer:corp", "sign-in")
    )
    assert refused == {"time": 1, "audience": 1, "confirmation": 2}


def _rsa(bits: int, exponent: int = 65537) -> dict[str, Any]:
    """A published RSA key of this size; that it is no product of two primes matters to no one."""
    modulus = (1 << (bits - 1)) + 1

    def encoded(number: int) -> str:
        raw = number.to_bytes((number.bit_length() + 7) // 8)
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    return {"kty": "RSA", "n": encoded(modulus), "e": encoded(exponent), "kid": "x"}


@pytest.mark.parametrize(
    "jwk",
    [
        _rsa(1024),
        _rsa(16_384),
        _rsa(65_536),
        _rsa(2048, exponent=1),
        _rsa(2048, exponent=(1 << 2000) + 1),
        {**_rsa(2048), "use": "enc"},
        {**_rsa(2048), "alg": "RS512"},
        {**_rsa(2048), "key_ops": ["sign"]},
        {**_rsa(2048), "n": 7},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": ["RSA"]},
        {},
    ],
)
def test_a_key_that_is_weak_or_costly_verifies_nothing(jwk: dict[str, Any]) -> None:
    """Ours: a published key is used only for its purpose, within sizes that do not stop the loop (ISO-6)."""
    assert read_key(jwk, "RS256") is None
    assert read_key({**_rsa(2048)}, "RS256") is not None
