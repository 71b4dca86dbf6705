"""An authorization server for tests: publishes signing keys at a recording upstream, and signs access tokens."""

import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import cycle
from typing import Any
from urllib.parse import parse_qs, quote_plus

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from gateway.domain.identifiers import new_issuer_id
from gateway.domain.tenancy.issuers import AdmissionRule, Issuer
from tests.support.gateway import RunningGateway
from tests.support.upstream import RecordingUpstream, Seen

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
_turns = cycle(range(8))


def public_jwk(key: PrivateKey, kid: str | None, **more: object) -> dict[str, Any]:
    """The published form of a key."""
    if isinstance(key, rsa.RSAPrivateKey):
        found = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        found = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**found, "use": "sig", **({} if kid is None else {"kid": kid}), **more}


@dataclass(slots=True)
class LocalIssuer:
    """Keys by id; the upstream answers every request with metadata and keys in one document."""

    upstream: RecordingUpstream
    keys: dict[str, PrivateKey] = field(default_factory=dict[str, PrivateKey])

    @property
    def url(self) -> str:
        """The issuer identifier."""
        return self.upstream.url

    def publish(self, *further: object, **more: object) -> None:
        """Answer with all keys, and with `further` ones as they are."""
        keys = [*(public_jwk(key, kid) for kid, key in self.keys.items()), *further]
        document = {"issuer": self.url, "jwks_uri": f"{self.url}/keys", "keys": keys, **more}
        self.upstream.body = orjson.dumps(document)

    def claims(self, audience: object, **more: object) -> dict[str, Any]:
        """The claims of a good token; a claim of None is left out."""
        now = int(time.time())
        standard = {"iss": self.url, "sub": "ada", "aud": audience, "iat": now, "exp": now + 600}
        return {name: value for name, value in {**standard, **more}.items() if value is not None}

    def token(self, audience: object, *, kid: str = "rsa", **claims: object) -> str:
        """A token signed with one of the keys."""
        key = self.keys[kid]
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(self.claims(audience, **claims), key, algorithm=algorithm, headers={"kid": kid})


def new_keys() -> dict[str, PrivateKey]:
    """An RSA key and an elliptic one, which the last calls have not given."""
    return dict(_keys(next(_turns)))


@cache
def _keys(_: int) -> Mapping[str, PrivateKey]:
    """Keys of one turn: an RSA key takes a tenth of a second to make, so a test process makes few."""
    return {
        "rsa": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "ec": ec.generate_private_key(ec.SECP256R1()),
    }


def new_issuer(upstream: RecordingUpstream, keys: Mapping[str, PrivateKey] | None = None) -> LocalIssuer:
    """An issuer with these keys, or with new ones, published."""
    issuer = LocalIssuer(upstream, new_keys() if keys is None else dict(keys))
    issuer.publish()
    return issuer


async def add_issuer(gateway: RunningGateway, slug: str, issuer: LocalIssuer, **more: object) -> dict[str, Any]:
    """The issuer as the tenant's; it admits everybody unless other rules are given."""
    body: dict[str, Any] = {"name": "corp", "url": issuer.url, "rules": [{}], **more}
    answer = await gateway.admin.post(f"/tenants/{slug}/issuers", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


@dataclass(slots=True)
class LocalProvider:
    """An issuer at which the gateway signs people in; its one document is also the response of the token endpoint.

    `claims` are added to each ID token, `answer` to each response.
    """

    issuer: LocalIssuer
    claims: dict[str, Any] = field(default_factory=dict[str, Any])
    answer: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def client(self) -> dict[str, Any]:
        """The gateway's client, as an admin stores it."""
        return {"client_id": "gateway", "client_secret": "secret-at-the-provider"}

    def publish(self, nonce: str | None = None, **claims: Any) -> None:
        """Answer with endpoints and tokens; with a nonce, with the ID token of a sign-in."""
        url = self.issuer.url
        reported: dict[str, Any] = {"audience": "gateway", "nonce": nonce, **self.claims, **claims}
        token = self.issuer.token(**reported)
        standard = {
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
            "access_token": "token-of-the-provider",
            "token_type": "Bearer",
            "id_token": token,
        }
        self.issuer.publish(**{**standard, **self.answer})


async def add_provider(gateway: RunningGateway, slug: str, provider: LocalProvider, **more: object) -> dict[str, Any]:
    """The provider as the tenant's issuer; it admits everybody unless other rules are given."""
    provider.publish()
    return await add_issuer(gateway, slug, provider.issuer, **{"sign_in": provider.client, **more})


def issuer_of(name: str, **more: Any) -> Issuer:
    """An issuer as it is stored, which admits everybody."""
    standard: dict[str, Any] = {
        "id": new_issuer_id(),
        "name": name,
        "url": "https://login.example",
        "jwks_url": "https://login.example/keys",
        "audiences": (),
        "algorithms": ("RS256",),
        "subject_claim": "sub",
        "groups_claim": "groups",
        "rules": (AdmissionRule(),),
        "max_lifetime_s": 3600,
        "enabled": True,
        "version": 1,
        "created_at": datetime.now(UTC),
        "updated_at": datetime.now(UTC),
    }
    return Issuer(**{**standard, **more})


INTROSPECTION_SECRET = "secret of the gateway for introspection"


@dataclass(slots=True)
class OpaqueTokens:
    """The opaque tokens of an issuer, whose upstream answers what `states` has for a token; `asked` about which."""

    issuer: LocalIssuer
    states: dict[str, dict[str, Any] | bytes] = field(default_factory=dict[str, Any])
    asked: list[str] = field(default_factory=list[str])
    secret: str = INTROSPECTION_SECRET
    """The secret that the endpoint accepts."""
    is_broken: bool = False
    """True: the introspection endpoint sends no state."""

    def __post_init__(self) -> None:
        """Answer requests to the endpoint; others get the issuer's document."""
        self.issuer.publish(introspection_endpoint=f"{self.issuer.url}/introspect")
        self.issuer.upstream.respond = self._respond

    @property
    def client(self) -> dict[str, Any]:
        """The gateway's client, as an admin stores it."""
        return {"client_id": "gateway", "client_secret": INTROSPECTION_SECRET}

    def add(self, token: str, audience: object, **claims: object) -> str:
        """An active token with these claims; a claim of None is left out."""
        self.states[token] = {"active": True, **self.issuer.claims(audience, **claims)}
        return token

    def _respond(self, seen: Seen) -> bytes:
        if seen.target != "/introspect":
            return self.issuer.upstream.body
        form = parse_qs(seen.body.decode())
        pair = base64.b64encode(f"gateway:{quote_plus(self.secret)}".encode()).decode()
        in_body = form.get("client_secret") == [self.secret]
        if self.is_broken or (seen.header("authorization") != f"Basic {pair}" and not in_body):
            return orjson.dumps({"error": "invalid_client"})
        self.asked += form["token"]
        state = self.states.get(form["token"][0], {"active": False})
        return state if isinstance(state, bytes) else orjson.dumps(state)


async def add_opaque(gateway: RunningGateway, slug: str, opaque: OpaqueTokens, **more: object) -> dict[str, Any]:
    """The issuer as the tenant's, asked about its tokens; `more` are members of the gateway's client there."""
    made = await add_issuer(gateway, slug, opaque.issuer, introspection={**opaque.client, **more})
    opaque.asked.clear()
    return made
