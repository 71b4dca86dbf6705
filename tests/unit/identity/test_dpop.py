"""Proofs of possession: the faults of a proof, and its single use."""

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jwt
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from jwt.algorithms import ECAlgorithm, OKPAlgorithm

from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import ProofRefused
from gateway.errors import LimitExceeded, RedisUnavailable
from gateway.identity import dpop
from gateway.identity.dpop import Proof, ProofChecks, thumbprint_of
from gateway.identity.limits import CLOCK_SKEW_S, WINDOW_S
from tests.support.issuer import new_keys
from tests.support.proofs import ProofKey

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
URL, TOKEN = "https://gateway.example/t/acme/mcp", "token-of-ada"
KEY, OTHER, THIRD = ProofKey(), ProofKey(), ProofKey()


class Used:
    """Used ids of tenants."""

    def __init__(self) -> None:
        self.ids: set[tuple[str, str]] = set()

    async def __call__(self, tenant: TenantId, named: str, for_s: int) -> bool:
        assert for_s >= 2 * WINDOW_S + 2 * CLOCK_SKEW_S
        is_first = (tenant, named) not in self.ids
        self.ids.add((tenant, named))
        return is_first


async def _check(text: str | None, key: ProofKey = KEY, *, checks: ProofChecks | None = None) -> None:
    proof = Proof(text, "POST")
    checks = checks or ProofChecks(Used())
    await checks.check(ACME, proof, token=TOKEN, url=URL, thumbprint=key.thumbprint)


def _private() -> dict[str, Any]:
    assert isinstance(KEY.private, ec.EllipticCurvePrivateKey)
    return ECAlgorithm.to_jwk(KEY.private, as_dict=True)


def _unsigned() -> str:
    header = base64.urlsafe_b64encode(orjson.dumps({"typ": "dpop+jwt", "alg": "none", "jwk": KEY.jwk})).decode()
    return f"{header.rstrip('=')}.{KEY.prove(URL, TOKEN).split('.')[1]}."


def _shared() -> str:
    """A proof whose HMAC secret comes with it."""
    jwk = {"kty": "oct", "k": "c2VjcmV0"}
    return jwt.encode({"jti": "1"}, b"secret" * 6, algorithm="HS256", headers={"typ": "dpop+jwt", "jwk": jwk})


FAULTS: dict[str, Callable[[], str | None]] = {
    "missing": lambda: None,
    "no JWT": lambda: "a.b.c",
    "too long": lambda: KEY.prove(URL, TOKEN, more="x" * 8192),
    "unsigned": _unsigned,
    "a shared secret": _shared,
    "another key": lambda: OTHER.prove(URL, TOKEN),
    "another key, signed for this one": lambda: OTHER.prove(URL, TOKEN, header={"jwk": KEY.jwk}),
    "the private key": lambda: KEY.prove(URL, TOKEN, header={"jwk": _private()}),
    "no key": lambda: KEY.prove(URL, TOKEN, header={"jwk": None}),
    "a key of no kind": lambda: KEY.prove(URL, TOKEN, header={"jwk": {"kty": ["EC"]}}),
    "another type": lambda: KEY.prove(URL, TOKEN, header={"typ": "JWT"}),
    "another method": lambda: KEY.prove(URL, TOKEN, "GET"),
    "another case of the method": lambda: KEY.prove(URL, TOKEN, "post"),
    "another profile": lambda: KEY.prove("https://gateway.example/t/acme/ops/mcp", TOKEN),
    "another host": lambda: KEY.prove("https://evil.example/t/acme/mcp", TOKEN),
    "another scheme": lambda: KEY.prove("http://gateway.example/t/acme/mcp", TOKEN),
    "another port": lambda: KEY.prove("https://gateway.example:8443/t/acme/mcp", TOKEN),
    "a user in the URL": lambda: KEY.prove("https://gateway.example@evil.example/t/acme/mcp", TOKEN),
    "a port that is none": lambda: KEY.prove("https://gateway.example:x/t/acme/mcp", TOKEN),
    "a URL that is none": lambda: KEY.prove(URL, TOKEN, htu={"url": URL}),
    "another token": lambda: KEY.prove(URL, "token-of-bob"),
    "no token": lambda: KEY.prove(URL, None),
    "a token that is none": lambda: KEY.prove(URL, None, ath=7),
    "the far future": lambda: KEY.prove(URL, TOKEN, iat=4_000_000_000),
    "beyond any future": lambda: KEY.prove(URL, TOKEN, iat=10**400),
    "before any past": lambda: KEY.prove(URL, TOKEN, iat=-(10**400)),
    "the past": lambda: KEY.prove(URL, TOKEN, iat=1_000_000_000),
    "no time": lambda: KEY.prove(URL, TOKEN, iat=float("nan")),
    "a text as time": lambda: KEY.prove(URL, TOKEN, iat="now"),
    "an end": lambda: KEY.prove(URL, TOKEN, exp=1),
    "no id": lambda: KEY.prove(URL, TOKEN, jti=None),
    "an empty id": lambda: KEY.prove(URL, TOKEN, jti=""),
    "a long id": lambda: KEY.prove(URL, TOKEN, jti="x" * 257),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_proof_of_anything_else_is_refused(fault: str) -> None:
    """RFC 9449 section 4.3: each check of a proof (TEN-2)."""
    with pytest.raises(ProofRefused):
        await _check(FAULTS[fault]())


async def test_a_proof_for_tokens_needs_no_token_and_counts_once() -> None:
    """RFC 9449 section 5: the result is the thumbprint of the proved key, whichever it is (TEN-2)."""
    checks, proof = ProofChecks(Used()), Proof(OTHER.prove(URL, None), "POST")
    assert await checks.prove(ACME, proof, url=URL) == OTHER.thumbprint
    for replayed in (replace(proof, is_used=False), proof):
        with pytest.raises(ProofRefused, match="used already"):
            await checks.prove(ACME, replayed, url=URL)


@pytest.mark.parametrize(
    "url",
    [URL, f"{URL}?a=b", f"{URL}#x", "HTTPS://Gateway.Example/t/acme/mcp", "https://gateway.example:443/t/acme/mcp"],
)
async def test_a_proof_for_another_spelling_of_the_url_is_accepted(url: str) -> None:
    """RFC 9449 section 4.3: query, fragment, case and a default port make no difference (TEN-2)."""
    await _check(KEY.prove(url, TOKEN))


async def test_a_proof_of_each_kind_of_key_is_accepted() -> None:
    """RFC 7638, RFC 8037: thumbprints of RSA, elliptic and Edwards keys (TEN-2)."""
    keys = new_keys()
    await _check(KEY.prove(URL, TOKEN))
    for algorithm in ("RS256", "PS256"):
        key = ProofKey(keys["rsa"], algorithm)
        await _check(key.prove(URL, TOKEN), key)
    edwards = OKPAlgorithm.to_jwk(ed25519.Ed25519PrivateKey.generate().public_key(), as_dict=True)
    # RFC 8037 appendix A.3
    assert thumbprint_of({**edwards, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}) == (
        "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    )


async def test_a_proof_counts_once_in_its_tenant() -> None:
    """RFC 9449 section 11.1: a second use is refused, also of the same id in another proof; requests are checked again
    without a use (TEN-2).
    """
    checks, text = ProofChecks(Used()), KEY.prove(URL, TOKEN, jti="same")
    proof = Proof(text, "POST")
    for _ in range(2):
        await checks.check(ACME, proof, token=TOKEN, url=URL, thumbprint=KEY.thumbprint)
    for replayed in (text, KEY.prove(URL, TOKEN, jti="same")):
        with pytest.raises(ProofRefused, match="already"):
            await _check(replayed, checks=checks)
    await _check(OTHER.prove(URL, TOKEN, jti="same"), OTHER, checks=checks)
    await checks.check(GLOBEX, Proof(text, "POST"), token=TOKEN, url=URL, thumbprint=KEY.thumbprint)


async def test_proofs_are_refused_while_their_use_cannot_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: without Redis no proof is accepted; one tenant cannot fill it with used ids (TEN-2, ISO-6)."""

    async def away(*_: object) -> bool:
        raise RedisUnavailable("Redis does not respond")

    with pytest.raises(RedisUnavailable):
        await _check(KEY.prove(URL, TOKEN), checks=ProofChecks(away))
    monkeypatch.setattr(dpop, "PROOF_BURST_S", 2e6)
    monkeypatch.setattr(dpop, "PROOFS_PER_S", 2e-6)
    monkeypatch.setattr(dpop, "PROOFS_PER_S_EACH", 1e-6)
    checks = ProofChecks(Used())
    for _ in range(2):
        await _check(KEY.prove(URL, TOKEN), checks=checks)
    with pytest.raises(LimitExceeded):
        await _check(KEY.prove(URL, TOKEN), checks=checks)
    for _ in range(2):
        await _check(OTHER.prove(URL, TOKEN), OTHER, checks=checks)
    with pytest.raises(LimitExceeded):
        await _check(THIRD.prove(URL, TOKEN), THIRD, checks=checks)
    proof = Proof(KEY.prove(URL, TOKEN), "POST")
    await checks.check(GLOBEX, proof, token=TOKEN, url=URL, thumbprint=KEY.thumbprint)


async def test_unknown_callers_of_the_token_endpoint_refuse_no_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: anyone can prove a new key there, so these proofs do not use up those of calls (ISO-6)."""
    monkeypatch.setattr(dpop, "PROOF_BURST_S", 1e6)
    monkeypatch.setattr(dpop, "PROOFS_PER_S", 1e-6)
    checks = ProofChecks(Used())
    await checks.prove(ACME, Proof(OTHER.prove(URL, None), "POST"), url=URL)
    with pytest.raises(LimitExceeded):
        await checks.prove(ACME, Proof(THIRD.prove(URL, None), "POST"), url=URL)
    await _check(KEY.prove(URL, TOKEN), checks=checks)


@pytest.mark.parametrize("dear", [{"n": "A" * 1366, "e": "AQAB"}, {"n": "A" * 342, "e": "_____w"}])
async def test_keys_that_are_expensive_to_verify_are_refused(dear: dict[str, str]) -> None:
    """Ours: proofs are verified on the event loop, so RSA keys are bounded (ISO-6)."""
    with pytest.raises(ProofRefused, match="at most 4096 bits"):
        await _check(KEY.prove(URL, TOKEN, header={"alg": "ES256", "jwk": {"kty": "RSA", **dear}}))
