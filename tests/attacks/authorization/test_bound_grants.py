"""Tokens of the authorization server that are bound to a key of the client (DPoP, RFC 9449), without that key."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx
import jwt
import orjson

from tests.conformance.node import clean_environment, find_packages
from tests.support.authorization import VERIFIER, Application, register
from tests.support.gateway import ACCEPT, META, MODERN
from tests.support.proofs import ProofKey

KEY, OTHER = ProofKey(), ProofKey()
_BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}})
_HEADERS = {
    "mcp-protocol-version": MODERN,
    "mcp-method": "tools/list",
    "accept": ACCEPT,
    "content-type": "application/json",
}


async def _ask(application: Application, *proofs: str, **fields: str) -> httpx.Response:
    """The response of the token endpoint to a request with these proofs."""
    form = {"client_id": application.client_id, **fields}
    form |= {} if application.secret is None else {"client_secret": application.secret}
    headers = [("dpop", proof) for proof in proofs]
    return await application.gateway.http.post(f"/t/{application.slug}/oauth/token", data=form, headers=headers)


async def _redeem(application: Application, *proofs: str, code: str = "") -> httpx.Response:
    fields = {"grant_type": "authorization_code", "code": code or await application.code(), "code_verifier": VERIFIER}
    return await _ask(application, *proofs, redirect_uri=application.redirect_uri, **fields)


async def _refresh(application: Application, token: str, *keys: ProofKey) -> httpx.Response:
    proofs = [_proof(application, key) for key in keys]
    return await _ask(application, *proofs, grant_type="refresh_token", refresh_token=token)


def _proof(application: Application, key: ProofKey = KEY, **more: Any) -> str:
    return key.prove(f"{application.issuer}/oauth/token", None, **more)


async def _bearer(application: Application, token: str) -> httpx.Response:
    """The response to a call with a bearer token."""
    headers = {**_HEADERS, "authorization": f"Bearer {token}"}
    return await application.gateway.http.post(f"/t/{application.slug}/mcp", content=_BODY, headers=headers)


async def _status(application: Application, token: str, key: ProofKey | None, *, scheme: str = "DPoP") -> int:
    """The status of a call with a token, and with a proof by a key."""
    headers = {**_HEADERS, "authorization": f"{scheme} {token}"}
    headers |= {} if key is None else {"dpop": key.prove(application.resource, token)}
    place = f"/t/{application.slug}/mcp"
    return (await application.gateway.http.post(place, content=_BODY, headers=headers)).status_code


def _bound_to(issued: dict[str, Any]) -> str | None:
    found: str | None = (
        jwt.decode(issued["access_token"], options={"verify_signature": False}).get("cnf", {}).get("jkt")
    )
    return found


async def test_a_certified_client_binds_its_tokens(application: Application) -> None:
    """RFC 9449, npm oauth4webapi: code, call, refresh and call with proofs of one key (IDN-2, TEN-2)."""
    given = {"issuer": application.issuer, "resource": application.resource, "verifier": VERIFIER, "body": _BODY}
    given |= {"client_id": application.client_id, "redirect_uri": application.redirect_uri}
    program = Path(__file__).parents[2] / "conformance" / "bound_tokens.mjs"
    done = await anyio.run_process(
        ["node", str(program)],
        input=orjson.dumps({**given, "headers": _HEADERS, "code": await application.code()}),
        env=clean_environment() | {"EXAM_PACKAGES": str(await anyio.to_thread.run_sync(find_packages, "oauth"))},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert orjson.loads(done.stdout) == {"types": ["dpop", "dpop"], "statuses": [200, 200]}


async def test_a_token_that_was_issued_for_a_key_is_used_with_it_only(application: Application) -> None:
    """RFC 9449 section 5: a stolen token is of no use without the key; one without a proof stays a bearer token, and
    the metadata names the algorithms (IDN-2, TEN-2).
    """
    issued = (await _redeem(application, _proof(application))).json()
    token = issued["access_token"]
    assert (issued["token_type"], _bound_to(issued)) == ("DPoP", KEY.thumbprint)
    ways: list[tuple[ProofKey | None, str]] = [(KEY, "DPoP"), (OTHER, "DPoP"), (None, "DPoP"), (None, "Bearer")]
    ways += [(KEY, "Bearer"), (KEY, "DPoP")]
    assert [await _status(application, token, key, scheme=scheme) for key, scheme in ways] == [
        200,
        401,
        401,
        401,
        401,
        200,
    ]

    plain = (await _redeem(application)).json()
    assert (plain["token_type"], _bound_to(plain)) == ("Bearer", None)
    assert await _status(application, plain["access_token"], KEY) == 401
    assert await application.status(plain["access_token"]) == 200
    metadata = (await application.gateway.http.get("/.well-known/oauth-authorization-server/t/acme")).json()
    assert metadata["dpop_signing_alg_values_supported"] == ["ES256", "ES384", "ES512", "EdDSA", "RS256", "PS256"]


async def test_a_refresh_token_of_a_public_client_is_of_use_with_its_key_only(application: Application) -> None:
    """RFC 9449 section 5: a thief of a refresh token gets nothing and ends nothing; it is bound once (IDN-2)."""
    first = (await _redeem(application, _proof(application))).json()
    for keys in ((), (OTHER,)):
        refused = await _refresh(application, first["refresh_token"], *keys)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant"), refused.text
        assert "bound to a key" in refused.json()["error_description"]
    [grant] = (await application.gateway.admin.get("/tenants/acme/grants")).json()["items"]
    assert (grant["state"], grant["thumbprint"]) == ("active", KEY.thumbprint)
    second = (await _refresh(application, first["refresh_token"], KEY)).json()
    assert (second["token_type"], _bound_to(second)) == ("DPoP", KEY.thumbprint)
    assert await _status(application, second["access_token"], KEY) == 200
    retried = [await _refresh(application, first["refresh_token"], *keys) for keys in ((), (OTHER,), (KEY,))]
    assert [answer.status_code for answer in retried] == [400, 400, 200]

    later = (await _redeem(application)).json()["refresh_token"]
    both = await asyncio.gather(*(_refresh(application, later, key) for key in (KEY, OTHER)))
    [winner] = {_bound_to(answer.json()) for answer in both if answer.status_code == 200}
    following = next(answer.json()["refresh_token"] for answer in both if answer.status_code == 200)
    loser = OTHER if winner == KEY.thumbprint else KEY
    assert [(await _refresh(application, following, *keys)).status_code for keys in ((), (loser,))] == [400, 400]


async def test_a_replaced_refresh_token_ends_its_grant_with_its_key_only(application: Application) -> None:
    """Ours: a stale bound token cannot be used, so its finder ends nothing; a client that shares its key does (IDN-2).

    A grant that was bound after its first token ends in any case: a thief may have bound it.
    """
    stale = (await _redeem(application, _proof(application))).json()["refresh_token"]
    newest = {"refresh_token": stale}
    for _ in range(2):
        newest = (await _refresh(application, newest["refresh_token"], KEY)).json()
    for keys in ((), (OTHER,)):
        assert (await _refresh(application, stale, *keys)).json()["error"] == "invalid_grant"
    fields = {"client_id": application.client_id, "token": stale}
    await application.gateway.http.post(f"/t/{application.slug}/oauth/revoke", data=fields)
    assert await _status(application, newest["access_token"], KEY) == 200
    newest = (await _refresh(application, newest["refresh_token"], KEY)).json()
    assert (await _refresh(application, stale, KEY)).json()["error"] == "invalid_grant"
    assert (await _refresh(application, newest["refresh_token"], KEY)).json()["error"] == "invalid_grant"

    victim = (await _redeem(application)).json()["refresh_token"]
    thief = {"refresh_token": victim}
    for _ in range(2):
        thief = (await _refresh(application, thief["refresh_token"], OTHER)).json()
    assert (await _refresh(application, victim)).json()["error"] == "invalid_grant"
    assert (await _refresh(application, thief["refresh_token"], OTHER)).json()["error"] == "invalid_grant"


async def test_a_client_with_a_secret_may_change_its_key(application: Application) -> None:
    """RFC 9449 section 5: its refresh tokens are bound to its secret, its access tokens to the key of each request."""
    made = await register(application.gateway, confidential=True)
    client = replace(application, client_id=made["id"], secret=made["secret"])
    issued = (await _redeem(client, _proof(client))).json()
    for key in (OTHER, None, KEY):
        issued = (await _refresh(client, issued["refresh_token"], *([] if key is None else [key]))).json()
        assert _bound_to(issued) == (None if key is None else key.thumbprint), issued
        assert issued["token_type"] == ("Bearer" if key is None else "DPoP")


FAULTS: dict[str, Callable[[Application], list[str]]] = {
    "of another place": lambda one: [KEY.prove(one.resource, None)],
    "of another tenant": lambda one: [KEY.prove(f"{one.gateway.url}/t/globex/oauth/token", None)],
    "of another method": lambda one: [_proof(one, method="GET")],
    "of the past": lambda one: [_proof(one, iat=1_000_000_000)],
    "without an id": lambda one: [_proof(one, jti=None)],
    "of a private key": lambda one: [_proof(one, header={"jwk": {**KEY.jwk, "d": "AA"}})],
    "of no key": lambda one: [_proof(one, header={"jwk": None})],
    "signed by another key": lambda one: [_proof(one, OTHER, header={"jwk": KEY.jwk})],
    "twice": lambda one: [_proof(one), _proof(one, OTHER)],
    "no proof": lambda _: [""],
    "too long": lambda one: [_proof(one, more="x" * 8192)],
}


async def test_a_request_with_a_faulty_proof_gets_no_token_and_keeps_its_code(application: Application) -> None:
    """RFC 9449 section 5: `invalid_dpop_proof`, never a bearer token instead; a proof counts once (IDN-2, TEN-2)."""
    code = await application.code()
    for name, proofs in FAULTS.items():
        refused = await _redeem(application, *proofs(application), code=code)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_dpop_proof"), name
        assert "access_token" not in refused.text
    proof = _proof(application)
    issued = await _redeem(application, proof, code=code)
    assert issued.status_code == 200, issued.text
    replayed = await _ask(application, proof, grant_type="refresh_token", refresh_token=issued.json()["refresh_token"])
    assert replayed.json()["error"] == "invalid_dpop_proof"
    assert await _status(application, issued.json()["access_token"], KEY) == 200


async def test_a_bound_token_ends_with_its_grant(application: Application) -> None:
    """RFC 7009: its client revokes it without a proof; the key alone brings nothing back (IDN-2)."""
    issued = (await _redeem(application, _proof(application))).json()
    assert await _status(application, issued["access_token"], KEY) == 200
    fields = {"client_id": application.client_id, "token": issued["access_token"]}
    revoked = await application.gateway.http.post(f"/t/{application.slug}/oauth/revoke", data=fields)
    assert revoked.status_code == 200, revoked.text
    assert await _status(application, issued["access_token"], KEY) == 401
    assert (await _refresh(application, issued["refresh_token"], KEY)).json()["error"] == "invalid_grant"


async def test_an_issuer_may_demand_that_clients_prove_a_key(application: Application) -> None:
    """Ours: then the gateway issues no bearer token, and a stolen one of before is refused with the reason (IDN-2)."""
    before = await application.tokens()
    changed = await application.gateway.admin.patch("/tenants/acme/issuers/corp", json={"requires_dpop": True})
    assert changed.status_code == 200, changed.text

    code = await application.code()
    refused = [await _redeem(application, code=code), await _refresh(application, before["refresh_token"])]
    assert [(each.status_code, each.json()["error"]) for each in refused] == [(400, "invalid_dpop_proof")] * 2
    assert all("DPoP proof" in each.json()["error_description"] for each in refused)

    renewed = (await _refresh(application, before["refresh_token"], KEY)).json()
    bound = (await _redeem(application, _proof(application))).json()
    for each in (renewed, bound):
        assert (each["token_type"], await _status(application, each["access_token"], KEY)) == ("DPoP", 200)

    stolen = await _bearer(application, before["access_token"])
    assert (stolen.status_code, stolen.json()["error"]["data"]["code"]) == (401, "auth.proof_refused")
    assert stolen.headers["www-authenticate"].startswith("DPoP algs=")
