"""Tokens that are bound to a key of the client (DPoP, RFC 9449): used without it, as another kind, or twice."""

from typing import Any

import httpx
import pytest

from tests.support.documents import pets
from tests.support.gateway import ACCEPT, META, MODERN, RunningGateway, running_gateway
from tests.support.issuer import LocalIssuer, OpaqueTokens, add_issuer, add_opaque, new_issuer
from tests.support.proofs import ProofKey
from tests.support.servers import TestDatabase
from tests.support.stand import common_stand, database, gateway, own_stand, redis_url, stand, upstream
from tests.support.upstream import RecordingUpstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

CALL: dict[str, Any] = {"name": "list_pets", "arguments": {}}
CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
ALGS = 'algs="ES256 ES384 ES512 EdDSA RS256 PS256"'


@pytest.fixture
async def issuer(gateway: RunningGateway, upstream: RecordingUpstream) -> LocalIssuer:
    """An issuer of the tenant `acme`."""
    await gateway.create_tenant("acme")
    issuer = new_issuer(upstream)
    await add_issuer(gateway, "acme", issuer)
    return issuer


def _url(gateway: RunningGateway) -> str:
    return f"{gateway.url}/t/acme/mcp"


async def _send(
    gateway: RunningGateway, token: str, *proofs: str, scheme: str = "DPoP", message: dict[str, Any] | None = None
) -> httpx.Response:
    """A request with these proofs: of 2026-07-28, or a message of a session."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
    modern = {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"} if message is None else {}
    headers = [*modern.items(), ("accept", ACCEPT), ("authorization", f"{scheme} {token}")]
    headers += [("dpop", proof) for proof in proofs]
    return await gateway.http.post("/t/acme/mcp", json=message or body, headers=headers)


async def test_a_bound_token_is_used_with_a_proof_for_each_request(
    gateway: RunningGateway, issuer: LocalIssuer, upstream: RecordingUpstream
) -> None:
    """RFC 9449 section 7.1: calls without and with a session are the person's; the token goes nowhere (TEN-2)."""
    await gateway.import_document("acme", pets(upstream.url))
    key, url = ProofKey(), _url(gateway)
    token = issuer.token(url, cnf={"jkt": key.thumbprint})
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": CALL}

    listed = [await _send(gateway, token, key.prove(url, token), scheme=scheme) for scheme in ("DPoP", "dpop")]
    opened = await _send(gateway, token, key.prove(url, token), message=hello)
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "accept": ACCEPT}
    headers = {**session, "authorization": f"DPoP {token}", "dpop": key.prove(url, token)}
    called = await gateway.http.post("/t/acme/mcp", json=call, headers=headers)
    replayed = await gateway.http.post("/t/acme/mcp", json=call, headers=headers)
    ended = {**headers, "dpop": key.prove(f"{url}/", token, "DELETE")}
    closed = await gateway.http.delete("/t/acme/mcp/", headers=ended)  # as clients that add a slash do

    assert [answer.status_code for answer in (*listed, opened, called, closed)] == [200, 200, 200, 200, 200]
    assert "result" in called.json(), called.text
    assert replayed.status_code == 401
    entries = (await gateway.admin.get("/tenants/acme/audit?tool=list_pets")).json()["items"]
    assert [entry["principal"] for entry in entries] == ["user:corp:ada"]
    assert not [seen for seen in upstream.seen if token in repr(seen)]


async def test_an_introspected_token_is_bound_like_a_jwt(gateway: RunningGateway, upstream: RecordingUpstream) -> None:
    """RFC 9449 section 6.2: the answer of the issuer has `cnf` (TEN-2)."""
    await gateway.create_tenant("acme")
    tokens, key, url = OpaqueTokens(new_issuer(upstream)), ProofKey(), _url(gateway)
    await add_opaque(gateway, "acme", tokens)
    token = tokens.add("bound-token", url, cnf={"jkt": key.thumbprint}, token_type="DPoP")

    answers = [
        await _send(gateway, token, key.prove(url, token)),
        await _send(gateway, token, key.prove(url, token), scheme="Bearer"),
        await _send(gateway, token, ProofKey().prove(url, token)),
    ]

    assert [answer.status_code for answer in answers] == [200, 401, 401]


async def test_a_bound_token_is_no_bearer_token_and_the_reverse(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: no bound token is a bearer token, also once it is cached, and no bearer token, key or token of the other
    kind of binding is a bound one (RFC 9449 section 7.2, TEN-2).
    """
    key, url = ProofKey(), _url(gateway)
    bound, bearer = issuer.token(url, cnf={"jkt": key.thumbprint}), issuer.token(url)
    certified = issuer.token(url, cnf={"x5t#S256": "0" * 43})
    both = issuer.token(url, cnf={"x5t#S256": "0" * 43, "jkt": key.thumbprint})
    api_key = await gateway.create_key("acme", "mcp")
    operator = gateway.admin.headers["authorization"].partition(" ")[2]
    used = [
        (bound, "DPoP", 200),
        (bound, "Bearer", 401),
        (bearer, "Bearer", 200),
        (bearer, "DPoP", 401),
        (bound, "DPoP", 200),
        (certified, "DPoP", 401),
        (certified, "Bearer", 401),
        (both, "DPoP", 401),
        (both, "Bearer", 401),
        (api_key, "Bearer", 200),
        (api_key, "DPoP", 401),
        (operator, "DPoP", 401),
    ]
    answers = [await _send(gateway, token, key.prove(url, token), scheme=scheme) for token, scheme, _ in used]
    forged = [
        {"authorization": f"Bearer {token} {url} {suffix}"}
        for token, suffix in ((bound, 1), (bearer, 0), (bound, "True"), (bearer, 1))
    ]
    tenants = f"{gateway.url}/admin/v1/tenants"  # takes no access tokens, so the header alone is the key of the cache
    assert [(await gateway.http.get(tenants, headers=one)).status_code for one in forged] == [401] * 4
    admin = {"authorization": f"DPoP {operator}", "dpop": key.prove(f"{gateway.url}/admin/v1/tenants", operator, "GET")}

    assert [answer.status_code for answer in answers] == [status for *_, status in used]
    assert answers[1].headers["www-authenticate"].startswith('Bearer error="invalid_token", resource_metadata=')
    assert answers[3].headers["www-authenticate"].startswith(f'DPoP error="invalid_token", {ALGS}, resource_metadata=')
    assert (await gateway.http.get("/admin/v1/tenants", headers=admin)).status_code == 401


async def test_a_proof_that_is_not_of_the_request_is_refused(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """RFC 9449 section 7.1: the challenge names the fault and the algorithms, so that a client can correct its request
    (TEN-2).
    """
    key, url = ProofKey(), _url(gateway)
    token = issuer.token(url, cnf={"jkt": key.thumbprint})
    other = f"{gateway.url}/t/acme/default/mcp"
    wrong = [
        [],
        [key.prove(url, token), key.prove(url, token)],
        [key.prove(other, token)],
        [key.prove(url, token, "GET")],
        [ProofKey().prove(url, token)],
    ]
    answers = [await _send(gateway, token, *proofs) for proofs in wrong]

    assert [answer.status_code for answer in answers] == [401] * 5
    for answer in answers:
        assert answer.headers["www-authenticate"].startswith(f'DPoP {ALGS}, error="invalid_dpop_proof", ')
        assert answer.json()["error"]["data"]["code"] == "auth.proof_refused"
    assert url in answers[2].json()["error"]["message"]


async def test_a_proof_counts_once_at_all_replicas(
    gateway: RunningGateway, issuer: LocalIssuer, database: TestDatabase, redis_url: str
) -> None:
    """RFC 9449 section 11.1: a proof that one replica has seen is refused by another, behind one public URL (TEN-2)."""
    key, url = ProofKey(), _url(gateway)
    token = issuer.token(url, cnf={"jkt": key.thumbprint})
    allowed = [issuer.upstream.authority]
    async with running_gateway(database.app_url, redis_url, egress_allow=allowed, public_url=gateway.url) as other:
        proofs = [key.prove(url, token) for _ in range(2)]
        statuses = [
            (await _send(each, token, proof)).status_code
            for proof, replicas in zip(proofs, ((gateway, other, gateway), (other, gateway)), strict=True)
            for each in replicas
        ]

    assert statuses == [200, 401, 401, 200, 401]


async def test_an_issuer_may_demand_bound_tokens(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: a stolen bearer token of such an issuer is refused with the reason, also if it was accepted (TEN-2)."""
    key, url, path = ProofKey(), _url(gateway), "/tenants/acme/issuers/corp"
    bearer, bound = issuer.token(url), issuer.token(url, cnf={"jkt": key.thumbprint})
    assert (await _send(gateway, bearer, scheme="Bearer")).status_code == 200
    changed = await gateway.admin.patch(path, json={"requires_dpop": True})
    assert (changed.status_code, changed.json()["requires_dpop"]) == (200, True), changed.text

    refused = [await _send(gateway, token, scheme="Bearer") for token in (bearer, issuer.token(url, jti="2"))]
    other = [
        await _send(gateway, bearer, key.prove(url, bearer)),
        await _send(gateway, bound, scheme="Bearer"),
        await _send(gateway, bound, key.prove(url, bound)),
    ]

    assert [answer.status_code for answer in (*refused, *other)] == [401, 401, 401, 401, 200]
    for answer in refused:
        assert answer.json()["error"]["data"]["code"] == "auth.proof_refused"
        assert "DPoP" in answer.json()["error"]["message"]
        assert answer.headers["www-authenticate"].startswith("DPoP algs=")
    metadata = (await gateway.http.get("/.well-known/oauth-protected-resource/t/acme/mcp")).json()
    assert metadata["dpop_bound_access_tokens_required"] is True
